#!/usr/bin/env python3
"""Sets everything up in `.venv` and trains the census job on an emulated TPU system.

    python3 tools/quickstart.py [--environment .venv-3.12] [--cluster [--expose]]

needs Python >= 3.11 and pip, nothing else. The job is `tools/examples/census_tpu_job.py`, a
TPUEstimator script in the style of 2019 that does not know this package. `etpe run` runs it
unedited on 2 emulated hosts with 2 cores each. The job trains, evaluates, resumes, evaluates
again, predicts and exports. Then `tools/examples/serve_census.py`, in plain TensorFlow, serves the
export.

With `--cluster` the hosts are two processes that `etpe run --processes 2` starts. Whoever reaches
the port of such a process can run programs as its user. So they get a network of their own if the
machine allows that. Otherwise they start only if it has no other interface than loopback, or with
`--expose`.

On the way the script prints the messages of `etpe`, and on a terminal the progress of the
training. The whole log goes to a file, which the script names. The last lines are the results.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
from typing import TextIO

import environment
import private_network

EXAMPLES = environment.ROOT / 'tools' / 'examples'
SHOWN_OF_FAILURE = 30
"""Last lines of the log, where the error is."""


def main() -> None:
    """Sets up, runs the job, serves its export, and prints the results of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--environment', default=environment.DIRECTORY,
                        help='the virtual environment to make, at the top of the checkout')
    parser.add_argument('--cluster', action='store_true',
                        help='let two processes on this machine be the hosts')
    parser.add_argument('--expose', action='store_true',
                        help='let other machines reach those processes; for private networks only')
    options = parser.parse_args()
    binaries = environment.ensure('cpu', directory=options.environment)
    model_dir = pathlib.Path(tempfile.mkdtemp(prefix='census-'))
    export_dir, log = model_dir / 'export', model_dir / 'log.txt'
    before, hosts = [], ['--hosts', '2']
    if options.cluster:
        hosts = ['--processes', '2', *['--expose'] * options.expose]
        before = [] if options.expose else private_network.before(binaries / 'python')
    kind = 'hosts, each a process,' if options.cluster else 'emulated hosts'
    print(f'training the census job on 2 {kind} with 2 cores each; its log: {log}', flush=True)
    job = run(log, *before, binaries / 'etpe', 'run', *hosts, '--cores', '2',
              EXAMPLES / 'census_tpu_job.py', f'--model_dir={model_dir}',
              f'--export_dir={export_dir}')
    print('serving its export with plain TensorFlow', flush=True)
    served = run(log, binaries / 'python', EXAMPLES / 'serve_census.py', *export_dir.iterdir())
    print(f'\nWhat the job and the server printed (checkpoints are in {model_dir}):')
    print(job + served, end='')


def run(log: pathlib.Path, *command: object) -> str:
    """Runs a command; returns what it printed, or ends with its exit status.

    Args:
      log: where its standard error is added; what matters of that is shown too.
      *command: words.
    """
    with open(log, 'a') as file, subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors='replace') as process:
        assert process.stdout is not None and process.stderr is not None
        reader = threading.Thread(target=follow, args=(process.stderr, file))
        reader.start()
        printed = process.stdout.read()
        reader.join()
    if process.returncode:
        print(printed, *log.read_text().splitlines()[-SHOWN_OF_FAILURE:], sep='\n')
        print(f'exit status {process.returncode}; the whole log is in {log}')
        sys.exit(process.returncode)
    return printed


def follow(errors: TextIO, log: TextIO) -> None:
    """Copies lines into the log; shows those of `etpe`, and, on a terminal, the newest step."""
    erase = '\r\x1b[K' if sys.stdout.isatty() else ''
    for line in errors:
        log.write(line)
        step = re.search(r'loss = ([\d.]+), step = (\d+)', line)
        if line.startswith('[etpe] '):
            print(f'{erase}{line.removeprefix("[etpe] ")}', end='', flush=True)
        elif step and erase:
            print(f'{erase}  step {step[2]}, loss {step[1]}', end='', flush=True)
    print(erase, end='', flush=True)


if __name__ == '__main__':
    main()
