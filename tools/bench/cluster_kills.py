#!/usr/bin/env python3
"""Kills workers of a running job at random times; its tables must be those of a job left alone.

    python3 tools/bench/cluster_kills.py [--kills 50] [--json FILE]

The job is small and has two workers on this machine. It makes steps and saves all the time; a
kill hits whatever goes on just then. The work is done by `tests/harness/cluster_losses.py`. Fifty
kills take about seven minutes on two idle cores, most of which new workers need to start.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import evidence


def run(number, folder):
    """Kills so often; returns seconds until each loss was told, and until new workers answered.

    Raises:
      SystemExit: if the tables differ, or the job failed.
    """
    path = os.pathsep.join(filter(None, [
        str(evidence.ROOT / 'tests'), os.environ.get('PYTHONPATH')]))
    told, ready, died, result = [], [], None, None
    with subprocess.Popen(
            [sys.executable, '-m', 'harness.cluster_losses', folder, f'kills-{number}'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, 'PYTHONPATH': path}) as process:
        for line in process.stdout:
            if line.startswith('scenario '):
                result = json.loads(line.removeprefix('scenario '))
            elif line.startswith('killed'):
                died = time.monotonic()
                print(line.strip(), flush=True)
            elif died is not None and 'E721' in line:
                told.append(time.monotonic() - died)
            elif died is not None and 'told "2 workers' in line:
                ready.append(time.monotonic() - died)
    if result is None or result['error'] or process.returncode:
        sys.exit(result and result['error'] or f'the job ended with status {process.returncode}')
    print(f'{number} kills: the tables are equal bit for bit, {result["digest"]}')
    return told, ready


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('--kills', type=int, default=50)
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    with evidence.recorded(parsed.json, 'cluster_kills') as figures, \
            tempfile.TemporaryDirectory() as folder:
        told, ready = run(parsed.kills, folder)
        figures.add('kills without a trace', 'kills', [parsed.kills])
        figures.add('a loss is told after', 's', told)
        figures.add('new workers answer after', 's', ready)


if __name__ == '__main__':
    main()
