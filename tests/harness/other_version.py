"""Is `etpe` in an installation of another version of this package."""

import sys

from estimator_tpu_embedding import version

version.VERSION = '0.0.9'

from estimator_tpu_embedding.cli.main import main  # noqa: E402

if __name__ == '__main__':
    sys.exit(main())
