"""`python -m estimator_tpu_embedding` is `etpe`."""

import sys

from .cli.main import main

if __name__ == '__main__':
    sys.exit(main())
