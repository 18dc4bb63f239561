#!/usr/bin/env python3
"""Runs part of the tests with every TensorFlow that the package says it works with.

    python3 tools/check_versions.py [2.16 2.17 ...]

Makes a throw-away virtual environment per version, installs the package into it and runs the
tests of the roads that scripts take, of whole jobs, of the TF2 side, and of the native kernels,
which that installation compiled: what `_tf` borrows from TensorFlow is all used in them. Takes
about seven minutes per version, most of them the installation. The exit status is 0 only if all
versions pass.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = ('2.16', '2.17', '2.18', '2.19', '2.20')
TESTS = ('compat', 'columns', 'estimator', 'native', 'hosts/native_test.py',
         'hosts/native_checkpoint_test.py', 'midlevel',
         'runner/kernels_test.py', 'runner/topology_test.py', 'runner/towers_test.py')


def passes(version: str) -> bool:
    """Whether the tests pass with one TensorFlow."""
    with tempfile.TemporaryDirectory() as directory:
        python = f'{directory}/bin/python'
        subprocess.run([sys.executable, '-m', 'venv', directory], check=True)
        # TensorFlow 2.20 itself does not work with protobuf 7, which pip would choose.
        subprocess.run([python, '-m', 'pip', 'install', '-q', f'{ROOT}[cpu,test]', 'protobuf<7',
                        f'tensorflow=={version}.*', f'tf-keras=={version}.*'], check=True)
        done = subprocess.run(
            [python, '-m', 'pytest', '-q', '-c', str(ROOT / 'setup.cfg'), f'--rootdir={ROOT}',
             '-p', 'no:cacheprovider', *[str(ROOT / 'tests' / name) for name in TESTS]],
            cwd=directory, env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'})
    return done.returncode == 0


def main() -> None:
    """Checks the versions of the command line, or all."""
    failed = [version for version in sys.argv[1:] or VERSIONS if not passes(version)]
    print(f'failed with TensorFlow {", ".join(failed)}' if failed else 'all versions pass')
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
