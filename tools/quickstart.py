#!/usr/bin/env python3
"""Sets everything up in `.venv` and trains the census job on an emulated TPU system.

    python3 tools/quickstart.py

needs Python >= 3.11 and pip, nothing else. The job is `tools/examples/census_tpu_job.py`, a
TPUEstimator script in the style of 2019 that does not know this package; `etpe run` runs it
unedited on 2 emulated hosts with 2 cores each. It trains, evaluates, resumes and evaluates
again; the last lines are its results.
"""

import subprocess
import sys
import tempfile

import environment

JOB = environment.ROOT / 'tools' / 'examples' / 'census_tpu_job.py'


def main() -> None:
    """Sets up, runs the job, prints its evaluations."""
    binaries = environment.ensure('cpu')
    model_dir = tempfile.mkdtemp(prefix='census-')
    command = [str(binaries / 'etpe'), 'run', '--hosts', '2', '--cores', '2', str(JOB),
               f'--model_dir={model_dir}']
    print('running', ' '.join(command), flush=True)
    job = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(f'\nThe evaluations that the job printed (checkpoints are in {model_dir}):')
    print(job.stdout, end='')
    sys.exit(job.returncode)


if __name__ == '__main__':
    main()
