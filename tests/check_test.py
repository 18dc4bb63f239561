"""The two parts of the checks: together they run every test, and CI fails if either does."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope='module')
def check():
    """`tools/check.py` as a module; a script finds what is beside it."""
    sys.path.insert(0, str(ROOT / 'tools'))
    try:
        spec = importlib.util.spec_from_file_location('check', ROOT / 'tools' / 'check.py')
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        del sys.path[0]


def commands(check, is_long):
    return [[str(word) for word in command]
            for _, command in check.parts(pathlib.Path('bin'), is_long)]


def folders(command):
    """What one of the commands runs tests of, at the top of `tests`."""
    tests = {path.name for path in (ROOT / 'tests').iterdir() if any(path.rglob('*_test.py'))
             or path.name.endswith('_test.py')}
    left_out = {pathlib.Path(word.partition('=')[2]).name
                for word in command if word.startswith('--ignore=')}
    named = {path.name for path in map(pathlib.Path, command) if ROOT / 'tests' in path.parents}
    return named or tests - left_out


def test_each_part_leaves_to_the_other_what_it_does_not_run(check):
    short = [command for command in commands(check, False) if command[0] == 'bin/pytest']
    long, = commands(check, True)
    assert all(command[command.index('-m') + 1] == 'not long' for command in short)
    assert long[long.index('-m') + 1] == 'long'
    everything = folders(long)
    assert {'architecture_test.py', 'runner', 'core'} <= everything
    run = [name for command in short for name in sorted(folders(command))]
    assert sorted(run) == sorted(everything)  # Each once.


@pytest.mark.parametrize('short, long, status', [(0, 0, 0), (1, 0, 1), (0, 5, 5), (1, 5, 5)])
def test_ci_runs_both_parts_and_fails_if_either_fails(tmp_path, short, long, status):
    fake = tmp_path / 'python3'
    fake.write_text(f'#!/bin/sh\necho "$*"\n[ "$2" = --long ] && exit {long}\nexit {short}\n')
    fake.chmod(0o700)
    done = subprocess.run([ROOT / '.ci' / 'run'], stdout=subprocess.PIPE, text=True, env={
        **os.environ, 'PATH': f'{tmp_path}{os.pathsep}{os.environ["PATH"]}'})
    assert done.returncode == status
    assert done.stdout == 'tools/check.py\ntools/check.py --long\n'
