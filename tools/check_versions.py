#!/usr/bin/env python3
"""Runs the fast part of the tests with every Python and the oldest TensorFlow that are supported.

    python3 tools/check_versions.py [--require] [VERSION ...]
    python3 tools/check_versions.py --quickstart

A VERSION is one of Python (`3.12`, with the newest TensorFlow), one of TensorFlow (`2.18`, with
Python 3.11), or both (`3.12/2.18`). Without any, it is each of 3.11, 3.12, 3.13 and 2.16.
`tools/interpreters.py` says where an interpreter is looked for. One that is not there is named in
the output, and is an error with `--require` only.

For each version it makes a throw-away virtual environment, installs the package with its native
kernels, and runs the tests in `TESTS`. They try facts, protos, operations and kernels; both engines
against the reference; and each road that scripts take to TensorFlow. They run jobs of TPUEstimator
and of TF2, and the census job by `etpe run`. Everything that the package borrows from TensorFlow is
used in them.

With `--quickstart` it runs `tools/quickstart.py` instead, without and with `--cluster`, on the
first supported Python that is there and is not the one that runs this script.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import environment
import interpreters

PYTHONS, OLDEST_TENSORFLOW = ('3.11', '3.12', '3.13'), '2.16'
TESTS = ('core', 'proto/codec_test.py', 'proto/reading_test.py', 'proto/runtime_test.py', 'ops',
         'native', 'columns', 'legacy_test.py', 'conformance/backend_test.py', 'hosts', 'compat',
         'estimator', 'midlevel', 'runner/kernels_test.py', 'runner/topology_test.py',
         'runner/towers_test.py', 'cli/run_test.py', 'cli/run_tf2_test.py')


def split(version: str) -> tuple[str, str | None]:
    """Returns the versions of Python and TensorFlow; the newest TensorFlow is `None`.

    >>> split('3.12'), split('2.18'), split('3.12/2.18')
    (('3.12', None), ('3.11', '2.18'), ('3.12', '2.18'))
    """
    python, _, tensorflow = version.rpartition('/')
    if not python:
        python, tensorflow = (PYTHONS[0], version) if version.startswith('2.') else (version, '')
    return python, tensorflow or None


def passes(python: str, tensorflow: str | None) -> bool:
    """Returns whether the tests pass with a Python, by its path, and a TensorFlow."""
    packages = [f'{environment.ROOT}[cpu,test]']
    if tensorflow:
        # TensorFlow 2.20 itself does not work with protobuf 7, which pip would choose.
        packages += ['protobuf<7', f'tensorflow=={tensorflow}.*', f'tf-keras=={tensorflow}.*']
    with tempfile.TemporaryDirectory() as directory:
        own = f'{directory}/bin/python'
        subprocess.run([python, '-m', 'venv', directory], check=True)
        subprocess.run([own, '-m', 'pip', '--disable-pip-version-check', 'install', '-q',
                        *packages], check=True)
        done = subprocess.run(
            [own, '-m', 'pytest', '-q', '-c', str(environment.ROOT / 'setup.cfg'),
             f'--rootdir={environment.ROOT}', '-p', 'no:cacheprovider', '-m', 'not soak',
             '-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder',
             *[str(environment.ROOT / 'tests' / name) for name in TESTS]],
            cwd=directory, env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'})
    return done.returncode == 0


def check(versions: list[str], is_required: bool) -> int:
    """Runs the tests with each version; returns the exit status."""
    results = {}
    for version in versions:
        wanted, tensorflow = split(version)
        python = interpreters.find(wanted)
        began = time.monotonic()
        if python is None:
            results[version] = f'no Python {wanted} found'
            continue
        print(f'== Python {wanted}, {python}, TensorFlow {tensorflow or "newest"}', flush=True)
        result = 'passed' if passes(python, tensorflow) else 'FAILED'
        results[version] = f'{result} after {time.monotonic() - began:.0f} s'
    for version, result in results.items():
        print(f'{version}: {result}')
    is_missing = any(result.startswith('no ') for result in results.values())
    return int('FAILED' in ' '.join(results.values()) or is_missing and is_required)


def quickstart(is_required: bool) -> int:
    """Runs the quickstart on another Python than this one; returns the exit status."""
    own = f'{sys.version_info.major}.{sys.version_info.minor}'
    for version in PYTHONS:
        if version != own and (python := interpreters.find(version)):
            print(f'== the quickstart on Python {version}, {python}', flush=True)
            command = [python, environment.ROOT / 'tools' / 'quickstart.py',
                       '--environment', f'.venv-{version}']
            return (subprocess.run(command).returncode
                    or subprocess.run([*command, '--cluster']).returncode)
    print(f'== no quickstart on another Python than {own}: none of {", ".join(PYTHONS)} found')
    return int(is_required)


def main() -> None:
    """Checks the versions of the command line, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('versions', nargs='*', metavar='VERSION')
    parser.add_argument('--require', action='store_true',
                        help='make an interpreter that is not there an error')
    parser.add_argument('--quickstart', action='store_true',
                        help='run the quickstart on another Python than this one')
    options = parser.parse_args()
    if options.quickstart:
        sys.exit(quickstart(options.require))
    sys.exit(check(options.versions or [*PYTHONS, OLDEST_TENSORFLOW], options.require))


if __name__ == '__main__':
    main()
