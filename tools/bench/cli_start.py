#!/usr/bin/env python3
"""Times the start of `etpe`: each command beside a bare `python -c pass`, in turns.

    python3 tools/bench/cli_start.py [RUNS] [--json FILE]

needs the package, or a checkout with protobuf. Prints medians of RUNS runs (20 if not given).
The aim is at most 0.15 s over the bare interpreter for `inspect` of a config.
"""

import argparse
import pathlib
import subprocess
import sys
import time

import evidence

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIG = str(ROOT / 'tests' / 'golden' / 'configs' / 'several_optimizers_2x2.pbtxt')
ETPE = ['-m', 'estimator_tpu_embedding']
COMMANDS = {
    'python -c pass': ['-c', 'pass'],
    'import numpy': ['-c', 'import numpy'],
    'etpe --version': [*ETPE, '--version'],
    'etpe explain E412': [*ETPE, 'explain', 'E412'],
    'etpe inspect': [*ETPE, 'inspect', CONFIG],
    'etpe validate': [*ETPE, 'validate', CONFIG],
    'etpe diff': [*ETPE, 'diff', CONFIG, CONFIG],
    'etpe size': [*ETPE, 'size', CONFIG],
    'etpe plan, 4096 hosts': [*ETPE, 'plan', CONFIG, '--hosts', '4096', '--cores', '1']}


def seconds(arguments: list[str]) -> float:
    """Wall-clock time of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True)
    return time.perf_counter() - start


def compare(runs: int, figures: evidence.Figures) -> None:
    """Runs all commands in turns and prints them side by side."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    print(f'{"":24}{"median":>9}{"lowest":>9}{"over bare":>11}{"ratio":>7}')
    bare = 0.0
    for name, own in times.items():
        median = figures.add(name, 's', own)
        bare = bare or median  # It comes first.
        print(f'{name:24}{median:8.3f}s{min(own):8.3f}s{median - bare:10.3f}s{median / bare:7.1f}')


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('runs', nargs='?', type=int, default=20, metavar='RUNS')
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    with evidence.recorded(parsed.json, 'cli_start') as figures:
        compare(parsed.runs, figures)


if __name__ == '__main__':
    main()
