#!/usr/bin/env python3
"""Runs the tests that need no TensorFlow with every supported version of protobuf.

    python3 tools/check_protobuf.py [4.25 7 ...]

Makes a throw-away virtual environment per version, with nothing in it but protobuf, NumPy (for one
test), psutil (for the harness) and the test tools. Runs `tests/core` and `tests/proto` in it
against this checkout. Prints one line per version; before the line of a version that failed, the
output of pytest. Takes half a minute per version. The exit status is 0 only if all versions pass.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = ('4.25', '5', '6', '7')
PACKAGES = ('numpy', 'psutil', 'pytest', 'pytest-timeout', 'hypothesis')
SHOW = 'import google.protobuf; print(google.protobuf.__version__)'


def passes(version: str) -> bool:
    """Returns whether the tests pass with one protobuf, and prints its line."""
    with tempfile.TemporaryDirectory() as directory:
        python = f'{directory}/bin/python'
        subprocess.run([sys.executable, '-m', 'venv', directory], check=True)
        subprocess.run([python, '-m', 'pip', 'install', '-q', f'protobuf=={version}.*', *PACKAGES],
                       check=True)
        found = subprocess.run([python, '-c', SHOW], check=True, capture_output=True, text=True)
        done = subprocess.run(
            [python, '-m', 'pytest', '-q', '-c', str(ROOT / 'setup.cfg'), f'--rootdir={ROOT}',
             '-p', 'no:cacheprovider', str(ROOT / 'tests/core'), str(ROOT / 'tests/proto')],
            cwd=directory, env={**os.environ, 'PYTHONPATH': str(ROOT)}, capture_output=True,
            text=True)
    if done.returncode:
        print(done.stdout, done.stderr)
    print(f'protobuf {found.stdout.strip()}: {done.stdout.strip().splitlines()[-1]}', flush=True)
    return not done.returncode


def main() -> None:
    """Checks the versions of the command line, or all."""
    failed = [version for version in sys.argv[1:] or VERSIONS if not passes(version)]
    sys.exit(f'failed with protobuf {", ".join(failed)}' if failed else 0)


if __name__ == '__main__':
    main()
