#!/usr/bin/env python3
"""Kills a training job hundreds of times, and compares its tables with a job that nobody kills.

    python3 tools/soak.py [--kills 500] [--seed 1] [FOLDER]

needs the package with its `cpu` extra and Linux. It prints a line per kill: its time, the first
and the last step of that life, and the step that is committed. 500 kills take about a quarter of
an hour. The work is done by `tests/harness/kill_job.py`; the checks run 3 kills of it, and 60 more
with `--long`.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    """Runs the harness in the place of this process."""
    path = os.pathsep.join(filter(None, [str(ROOT / 'tests'), os.environ.get('PYTHONPATH')]))
    arguments = sys.argv[1:]
    if '--kills' not in ' '.join(arguments):
        arguments += ['--kills', '500']
    os.execve(sys.executable, [sys.executable, '-m', 'harness.kill_job', *arguments],
              {**os.environ, 'PYTHONPATH': path})


if __name__ == '__main__':
    main()
