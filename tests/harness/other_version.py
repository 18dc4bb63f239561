"""Is `etpe` in an installation of an older version of this package.

Its `claim` does not know an argument that today's clients give.
"""

import sys

from estimator_tpu_embedding import version

version.VERSION = '0.0.9'

from estimator_tpu_embedding.cli.main import main  # noqa: E402
from estimator_tpu_embedding.cluster import worker  # noqa: E402

_today = worker.Worker._claim


def _claim(self, run, client):
    return _today(self, run, client)


worker.Worker._claim = _claim

if __name__ == '__main__':
    sys.exit(main())
