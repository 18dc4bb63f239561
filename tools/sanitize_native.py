#!/usr/bin/env python3
"""Builds the native kernels without TensorFlow and runs their checks under sanitizers.

    python3 tools/sanitize_native.py [address] [thread] [--deadline SECONDS]

Needs g++ or clang++ (or what CXX names) with the sanitizers' libraries, and no Python package.
`address` finds accesses outside of memory, leaks and undefined behaviour, `thread` data races;
without names both run, one after the other. The checks are tests/native/driver*.cc, the code is
estimator_tpu_embedding/native/src but for the operations, which need TensorFlow. Nothing is left
behind. The exit status is 0 if all went well.
"""

import argparse
import concurrent.futures
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / 'estimator_tpu_embedding' / 'native' / 'src'
CHECKS = ROOT / 'tests' / 'native'
FLAGS = ('-O1', '-g', '-std=c++17', '-ffp-contract=off', '-fno-math-errno',
         '-fno-omit-frame-pointer', '-pthread', '-Wall', '-Wextra')
SANITIZERS = {'address': ('-fsanitize=address,undefined', '-fno-sanitize-recover=all'),
              'thread': ('-fsanitize=thread',)}
OPTIONS = {'ASAN_OPTIONS': 'detect_leaks=1:allocator_may_return_null=1',
           'UBSAN_OPTIONS': 'print_stacktrace=1',
           'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1'}
PER_ISA = 'kernels_isa.cc'
ISAS = {'baseline': ()}
if platform.machine() in ('x86_64', 'AMD64'):
    ISAS['avx2'] = ('-mavx2',)
    ISAS['avx512'] = ('-mavx512f', '-mavx512vl', '-mavx512bw', '-mavx512dq')


def compiler():
    """The command of a C++ compiler, or `None`."""
    named = os.environ.get('CXX')
    return next((name for name in ([named] if named else ['g++', 'clang++', 'c++'])
                 if shutil.which(name)), None)


def units():
    """Yields (source, name of the object, flags) for all that is compiled."""
    sources = [path for path in SOURCES.glob('*.cc') if not path.name.startswith('ops_')]
    for source in sorted([*sources, *CHECKS.glob('driver*.cc')]):
        if source.name == PER_ISA:
            for isa, flags in ISAS.items():
                yield source, f'{source.stem}_{isa}.o', (f'-DETE_ISA={isa}', *flags)
        else:
            yield source, f'{source.stem}.o', ()


def run(command, deadline, **options):
    """Runs a command, whose output is shown; fails with it, or at the deadline."""
    subprocess.run([str(word) for word in command], timeout=deadline, check=True, **options)


def build(command, flags, directory, deadline):
    """The program, made by several compilers at once."""
    def compile_one(unit):
        source, name, own = unit
        run([command, *FLAGS, *flags, *own, f'-I{SOURCES}', '-c', source, '-o',
             directory / name], deadline)
        return directory / name

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        objects = list(pool.map(compile_one, units()))
    run([command, *FLAGS, *flags, *objects, '-o', directory / 'driver'], deadline)
    return directory / 'driver'


def check(command, name, deadline):
    """Builds and runs under one sanitizer."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        program = build(command, SANITIZERS[name], pathlib.Path(directory), deadline)
        built = time.monotonic()
        print(f'{name}: built in {built - began:.0f} s', flush=True)
        run([program], deadline, env={**os.environ, **OPTIONS})
    print(f'{name}: passed in {time.monotonic() - built:.0f} s', flush=True)


def main():
    """Runs what the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('sanitizers', nargs='*', metavar='SANITIZER',
                        help='of address and thread; both if none')
    parser.add_argument('--deadline', type=float, default=600, metavar='SECONDS',
                        help='of each build and each run')
    parsed = parser.parse_args()
    unknown = set(parsed.sanitizers) - set(SANITIZERS)
    if unknown:
        parser.error(f'no sanitizer: {", ".join(sorted(unknown))}')
    command = compiler()
    if command is None:
        print('There is no C++ compiler.', file=sys.stderr)
        return 1
    for name in parsed.sanitizers or SANITIZERS:
        try:
            check(command, name, parsed.deadline)
        except subprocess.SubprocessError as error:
            print(f'{name}: {error}', file=sys.stderr)
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
