"""Real processes for what only a fresh process can show; always reaped, output always shown."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / 'tools' / 'examples' / 'census_tpu_job.py'
HANDWRITTEN = ROOT / 'tools' / 'examples' / 'census_handwritten_loop.py'


def run_python(*arguments, deadline=100, **environment):
    """Runs this Python without our switches set; returns the completed process.

    Args:
      *arguments: of the command line.
      deadline: seconds after which the process is killed and the test fails.
      **environment: variables to set; `None` removes one.
    """
    variables = {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2', 'TF_USE_LEGACY_KERAS': None,
                 **environment}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=deadline,
        env={name: value for name, value in variables.items() if value is not None})
    print(done.stdout[-4000:], done.stderr[-4000:], sep='\n--- stderr ---\n')
    return done


def run_etpe(*arguments, **kwargs):
    """Runs `python -m estimator_tpu_embedding`."""
    return run_python('-m', 'estimator_tpu_embedding', *arguments, **kwargs)
