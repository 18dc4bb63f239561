#!/usr/bin/env python3
"""Builds the native kernels without TensorFlow, and runs their checks under sanitizers.

    python3 tools/sanitize_native.py [address] [thread] [none] [--deadline SECONDS]

Needs g++ or clang++ (or the compiler in CXX) with the libraries of the sanitizers, and no Python
package. `address` finds accesses outside of memory, leaks and undefined behaviour. `thread` finds
data races. Without names both run, one after the other. `none` only runs the checks, quickly. The
checks are tests/native/driver*.cc. They cover estimator_tpu_embedding/native/src without the
operations, which need TensorFlow. Nothing is left behind. The exit status is 0 if all went well.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import native_build

CHECKS = native_build.ROOT / 'tests' / 'native'
DEBUGGING = ('-O1', '-g', '-fno-omit-frame-pointer')
SANITIZERS = {'address': (*DEBUGGING, '-fsanitize=address,undefined', '-fno-sanitize-recover=all'),
              'thread': (*DEBUGGING, '-fsanitize=thread'), 'none': ('-O0', '-w')}
OPTIONS = {'ASAN_OPTIONS': 'detect_leaks=1:allocator_may_return_null=1',
           'UBSAN_OPTIONS': 'print_stacktrace=1',
           'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1'}


def build(flags, directory, deadline):
    """Returns the program, which several compilers build at once."""
    command = native_build.compiler()
    sources = [path for path in native_build.SOURCES.glob('*.cc')
               if not path.name.startswith('ops_')]
    objects = native_build.compile_all(
        command, flags, [*sources, *CHECKS.glob('driver*.cc')], directory, deadline)
    native_build.call([*command, *native_build.FLAGS, *flags, *objects, '-o',
                       str(directory / 'driver')], deadline)
    return directory / 'driver'


def check(name, deadline):
    """Builds and runs under one sanitizer, or under none."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        program = build(SANITIZERS[name], pathlib.Path(directory), deadline)
        built = time.monotonic()
        print(f'{name}: built in {built - began:.0f} s', flush=True)
        subprocess.run([program], timeout=deadline, check=True, env={**os.environ, **OPTIONS})
    print(f'{name}: passed in {time.monotonic() - built:.0f} s', flush=True)


def main():
    """Runs what the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('sanitizers', nargs='*', metavar='SANITIZER',
                        help='address, thread or none; the first two if left out')
    parser.add_argument('--deadline', type=float, default=600, metavar='SECONDS',
                        help='of each build and each run')
    parsed = parser.parse_args()
    unknown = set(parsed.sanitizers) - set(SANITIZERS)
    if unknown:
        parser.error(f'no sanitizer: {", ".join(sorted(unknown))}')
    for name in parsed.sanitizers or ('address', 'thread'):
        try:
            check(name, parsed.deadline)
        except (native_build.NotCompiled, subprocess.SubprocessError) as error:
            print(f'{name}: {error}', file=sys.stderr)
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
