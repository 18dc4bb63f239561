#!/usr/bin/env python3
"""Sets everything up in `.venv` and trains the census job on an emulated TPU system.

    python3 tools/quickstart.py

needs Python >= 3.11 and pip, nothing else. The job is `tools/examples/census_tpu_job.py`, a
TPUEstimator script in the style of 2019 that does not know this package; `etpe run` runs it
unedited on 2 emulated hosts with 2 cores each. It trains, evaluates, resumes, evaluates again,
predicts and exports; `tools/examples/serve_census.py`, plain TensorFlow, then serves the export.
The last lines are their results.
"""

import pathlib
import subprocess
import sys
import tempfile

import environment

EXAMPLES = environment.ROOT / 'tools' / 'examples'


def main() -> None:
    """Sets up, runs the job, serves its export, prints what both said."""
    binaries = environment.ensure('cpu')
    model_dir = tempfile.mkdtemp(prefix='census-')
    export_dir = pathlib.Path(model_dir) / 'export'
    job = run(binaries / 'etpe', 'run', '--hosts', '2', '--cores', '2',
              EXAMPLES / 'census_tpu_job.py', f'--model_dir={model_dir}',
              f'--export_dir={export_dir}')
    served = run(binaries / 'python', EXAMPLES / 'serve_census.py', *export_dir.iterdir())
    print(f'\nWhat the job and the server printed (checkpoints are in {model_dir}):')
    print(job + served, end='')


def run(*command: object) -> str:
    """Runs a command; returns what it printed, or ends with its exit status."""
    words = [str(word) for word in command]
    print('running', ' '.join(words), flush=True)
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stdout, end='')
        sys.exit(done.returncode)
    return done.stdout


if __name__ == '__main__':
    main()
