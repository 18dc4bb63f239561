#!/usr/bin/env python3
"""`etpe inspect` from a checkout in which nothing is installed but protobuf.

    python3 tools/inspect_tpu_embedding_config.py [--format text|json|md] INPUT
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from estimator_tpu_embedding.cli.main import main  # noqa: E402

if __name__ == '__main__':
    sys.exit(main(['inspect', *sys.argv[1:]]))
