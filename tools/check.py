#!/usr/bin/env python3
"""Runs every check of this project in `.venv`, which it makes if needed.

    python3 tools/check.py

needs Python >= 3.11 and pip, nothing else. The order is cheapest first: lint, types, the
architecture, the tests that need no session, then all others. Tests run from another directory
against the installed package, so that what is tested is what users install. Ends with pytest's
closing line; the exit status is 0 only if everything passed.
"""

import os
import tempfile

import environment

ROOT = environment.ROOT
FAST = ('core', 'proto', 'ops')
AT_ONCE = ('-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder')
"""Most tests wait for one thread of TensorFlow, or for a process that imports it. Files with few
tests are the slow ones: left to itself the plugin would begin them last, and one core would idle.
"""


def main() -> None:
    """Installs and checks."""
    binaries = environment.ensure('cpu', 'test')
    for name, arguments in (('flake8', ['estimator_tpu_embedding', 'tests', 'tools']),
                            ('mypy', [])):
        print(f'== {name}', flush=True)
        environment.run([str(binaries / name), *arguments], cwd=ROOT)
    tests = ROOT / 'tests'
    with tempfile.TemporaryDirectory() as elsewhere:
        for name, paths in (
                ('architecture', [tests / 'architecture_test.py']),
                ('core, proto, ops', [*AT_ONCE, *[tests / folder for folder in FAST]]),
                ('all other tests', [
                    *AT_ONCE, tests, '--ignore', tests / 'architecture_test.py', *[
                        argument for folder in FAST
                        for argument in ('--ignore', tests / folder)]])):
            print(f'== {name}', flush=True)
            environment.run(
                [str(binaries / 'pytest'), '-q', '-c', str(ROOT / 'setup.cfg'),
                 f'--rootdir={ROOT}', '-p', 'no:cacheprovider', *map(str, paths)],
                cwd=elsewhere, env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'})


if __name__ == '__main__':
    main()
