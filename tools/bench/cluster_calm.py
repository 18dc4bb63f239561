#!/usr/bin/env python3
"""Trains on two workers beside busy processes, and counts the workers that are taken for lost.

    python3 tools/bench/cluster_calm.py [--minutes 30] [--busy 2] [--json FILE]

Nobody is killed, so each loss that is told is a false one, and the job must tell none. It is the
census job with its own limits, such as three seconds for an answer. SIGTERM ends it.
"""

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time

import evidence
from networks import die_with_parent

JOB = evidence.ROOT / 'tools' / 'examples' / 'census_tpu_job.py'
BUSY = 'while True: pass'


def run(minutes, folder):
    """Trains; returns how many losses were told, the steps, and the slowest answer in ms.

    Raises:
      SystemExit: if the job ends before its time, or in another way than SIGTERM ends it.
    """
    with subprocess.Popen(
            [sys.executable, '-m', 'estimator_tpu_embedding', 'run', '--processes', '2', JOB,
             f'--model_dir={folder}', '--train_steps=1000000000'],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=die_with_parent) as process:
        end = time.monotonic() + 60 * minutes
        told = []
        for line in process.stderr:
            told.append(line)
            if time.monotonic() > end:
                process.send_signal(signal.SIGTERM)
                end = float('inf')
    if end != float('inf'):
        sys.exit(f'the job ended with status {process.returncode}: {told[-1]}')
    losses = [line for line in told if re.search('E72[0-9]', line)]
    print(*losses, sep='')
    report = next(line for line in reversed(told) if line.startswith('[etpe] train: '))
    return (len(losses), int(re.search(r'([\d,]+) steps', report)[1].replace(',', '')),
            max(map(int, re.findall(r'longest (\d+) ms', report))))


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--busy', type=int, default=2, help='processes that only compute')
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, '-c', BUSY], preexec_fn=die_with_parent)
            for _ in range(parsed.busy)]
    try:
        with evidence.recorded(parsed.json, 'cluster_calm') as figures, \
                tempfile.TemporaryDirectory() as folder:
            losses, steps, longest = run(parsed.minutes, folder)
            figures.add('beside busy processes', 'processes', [parsed.busy])
            figures.add('training', 'minutes', [parsed.minutes])
            figures.add('steps', 'steps', [steps])
            figures.add('workers taken for lost', 'workers', [losses])
            figures.add('the slowest answer of a worker', 'ms', [longest])
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return 1 if losses else 0


if __name__ == '__main__':
    sys.exit(main())
