#!/usr/bin/env python3
"""Runs `etpe inspect` from a checkout where only protobuf is installed.

    python3 tools/inspect_tpu_embedding_config.py [--format text|json] INPUT
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from estimator_tpu_embedding.cli.main import main  # noqa: E402

if __name__ == '__main__':
    sys.exit(main(['inspect', *sys.argv[1:]]))
