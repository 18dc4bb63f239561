"""The parts of the checks run every test once, CI runs all parts, other Pythons are found."""

import configparser
import os
import pathlib
import re

import pytest
from harness import groups
from harness.processes import ROOT
from harness.tools import load


@pytest.fixture(scope='module')
def check():
    return load('check')


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


@pytest.mark.parametrize('short, quickstart, long, status', [
    (0, 0, 0, 0), (1, 0, 0, 1), (0, 3, 0, 3), (0, 0, 5, 5), (1, 3, 5, 5)])
def test_ci_runs_all_parts_and_fails_if_one_fails(tmp_path, short, quickstart, long, status):
    fake = tmp_path / 'python3'
    fake.write_text(f'#!/bin/sh\necho "$*"\n[ "$2" = --long ] && exit {long}\n'
                    f'[ "$2" = --quickstart ] && exit {quickstart}\nexit {short}\n')
    fake.chmod(0o700)
    done = groups.run([ROOT / '.ci' / 'run'], env={
        **os.environ, 'PATH': f'{tmp_path}{os.pathsep}{os.environ["PATH"]}'})
    assert done.returncode == status
    assert done.stdout.splitlines() == [
        'tools/check.py', 'tools/check_versions.py --quickstart', 'tools/check.py --long']


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """`machine(path, prints, status)` makes an interpreter; no other can be found."""
    def make(path, prints, status=0):
        made = tmp_path / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(f'#!/bin/sh\necho {prints}\nexit {status}\n')
        made.chmod(0o700)
        return str(made)

    for name in ('PYTHON311', 'PYTHON312', 'PYTHON313'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('PATH', f'{tmp_path}/shims{os.pathsep}{tmp_path}/bin')
    monkeypatch.setenv('PYENV_ROOT', f'{tmp_path}/pyenv')
    return make


def test_an_interpreter_is_found_where_it_really_runs(machine, monkeypatch):
    find = load('interpreters').find
    assert find('3.12') is None
    machine('shims/python3.12', 'Python 3.12.1', 127)  # As one of pyenv that is not selected.
    machine('pyenv/versions/3.1.2/bin/python', 'Python 3.1.2')
    assert find('3.12') is None
    of_pyenv = machine('pyenv/versions/3.12.1/bin/python', 'Python 3.12.1')
    assert find('3.12') == of_pyenv
    on_path = machine('bin/python3.12', 'Python 3.12.4')
    assert find('3.12') == on_path
    named = machine('elsewhere/python', 'Python 3.12.9')
    monkeypatch.setenv('PYTHON312', named)
    assert find('3.12') == named
    monkeypatch.setenv('PYTHON313', named)
    with pytest.raises(SystemExit, match='PYTHON313=.* is no Python 3.13 that runs'):
        find('3.13')


@pytest.mark.parametrize('is_required', [False, True])
def test_a_missing_interpreter_is_named_and_an_error_only_if_it_is_required(
        machine, monkeypatch, capsys, is_required):
    versions, tried = load('check_versions'), []
    there = machine('bin/python3.12', 'Python 3.12.4')
    monkeypatch.setattr(versions, 'passes', lambda *one: tried.append(one) or True)
    assert versions.check(['3.12', '3.13', '3.12/2.18', '2.16'], is_required) == is_required
    assert tried == [(there, None), (there, '2.18')]
    said = capsys.readouterr().out.splitlines()
    assert said[-4:] == ['3.12: passed after 0 s', '3.13: no Python 3.13 found',
                         '3.12/2.18: passed after 0 s', '2.16: no Python 3.11 found']
    monkeypatch.setattr(versions, 'passes', lambda *one: False)
    assert versions.check(['3.12'], is_required) == 1


def test_the_tests_of_other_versions_are_there():
    assert [name for name in load('check_versions').TESTS if not (ROOT / 'tests' / name).exists()
            ] == []


def test_the_classifiers_name_the_pythons_that_are_checked():
    settings = configparser.ConfigParser()
    settings.read(ROOT / 'setup.cfg')
    python = 'Programming Language :: Python :: 3'
    assert [f'{python}{version.removeprefix("3")}' for version in load('check_versions').PYTHONS] \
        == re.findall(rf'^{python}\..*$', settings['metadata']['classifiers'], re.MULTILINE)
