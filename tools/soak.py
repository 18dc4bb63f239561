#!/usr/bin/env python3
"""Kills a training job hundreds of times, and compares its tables with those of one left alone.

    python3 tools/soak.py [--kills 500] [--seed 1] [FOLDER]

needs the package with its `cpu` extra and Linux. It prints a line per kill: when it came, where
that life began, which step it made last and which one is committed. See
`tests/harness/kill_job.py`, of which the checks run 3 kills, with `--long` 60 more; 500 take about
a quarter of an hour.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    """Becomes the harness."""
    path = os.pathsep.join(filter(None, [str(ROOT / 'tests'), os.environ.get('PYTHONPATH')]))
    arguments = sys.argv[1:]
    if '--kills' not in ' '.join(arguments):
        arguments += ['--kills', '500']
    os.execve(sys.executable, [sys.executable, '-m', 'harness.kill_job', *arguments],
              {**os.environ, 'PYTHONPATH': path})


if __name__ == '__main__':
    main()
