#!/usr/bin/env python3
"""Runs the checks of this project in `.venv`, which it makes if needed.

    python3 tools/check.py           lint, types, the architecture, and the tests but the long ones
    python3 tools/check.py --long    the long tests only: many kills, long runs, whole matrices

needs Python >= 3.11 and pip, nothing else. The cheapest part comes first. Tests run from another
directory, so that they import the installed package, as users do. After each part but the last the
script prints how long it took; for the last part, pytest's closing line says it. The exit status
is 0 only if everything passed.
"""

import argparse
import os
import tempfile
import time

import environment

ROOT = environment.ROOT
TESTS = ROOT / 'tests'
FAST = ('core', 'proto', 'ops')
BY_FILE = ('-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder')
"""Most tests wait for one thread of TensorFlow, or for another process. Files with few tests are
the slow ones. The plugin would begin them last, and leave one core idle.
"""
BY_TEST = ('-n', '3', '--dist', 'load', '--maxschedchunk', '1')
"""Long tests are few, and several of them are in one file. Three at a time keep two cores busy,
since many of them wait: for another process, or for a deadline.
"""


def parts(binaries, is_long):
    """Yields (name of a part, its command)."""
    def pytest(*arguments):
        return [binaries / 'pytest', '-q', '-c', ROOT / 'setup.cfg', f'--rootdir={ROOT}',
                '-p', 'no:cacheprovider', '-m', 'long' if is_long else 'not long', *arguments]

    if is_long:
        yield 'long tests', pytest(*BY_TEST, TESTS)
        return
    yield 'flake8', [binaries / 'flake8', *(
        ROOT / folder for folder in ('estimator_tpu_embedding', 'tests', 'tools'))]
    yield 'mypy', [binaries / 'mypy', '--config-file', ROOT / 'setup.cfg']
    architecture = TESTS / 'architecture_test.py'
    yield 'architecture', pytest(architecture)
    yield 'core, proto, ops', pytest(*BY_FILE, *(TESTS / folder for folder in FAST))
    yield 'all other tests', pytest(*BY_FILE, TESTS, *(
        f'--ignore={path}' for path in (architecture, *(TESTS / folder for folder in FAST))))


def main() -> None:
    """Installs and checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--long', action='store_true', help='run the long tests only')
    is_long = parser.parse_args().long
    began = time.monotonic()
    last, binaries = 'installation', environment.ensure('cpu', 'test')
    with tempfile.TemporaryDirectory() as elsewhere:
        for name, command in parts(binaries, is_long):
            print(f'== {last} took {time.monotonic() - began:.0f} s; {name}', flush=True)
            last, began = name, time.monotonic()
            # Lint and types read their settings where they run.
            environment.run(
                [str(word) for word in command],
                cwd=elsewhere if command[0].name == 'pytest' else ROOT,
                env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'})


if __name__ == '__main__':
    main()
