"""Processes that tests start never outlive them, and waits end."""

import ast
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from harness import groups
from harness.processes import ROOT, path_with_harness, run_python, until_gone
from harness.waiting import until

STARTERS = {'Popen', 'run', 'call', 'check_call', 'check_output', 'getoutput', 'getstatusoutput'}
EXCEPTIONS = {
    'harness/groups.py': 'starts them for all others',
    'harness/disk_job.py': 'is a child itself, and mounts a disk',
    'harness/sweeps.py': 'is a child itself, and mounts disks'}
FOREIGN = 'scripts', 'doctor/corpus', 'doctor/today', 'golden'
"""Folders of programs of users, and of what was recorded."""

TREE = '''
import subprocess, sys, time
child = subprocess.Popen(['sleep', '600'])
print(child.pid, flush=True)
if 'ends' not in sys.argv:
    time.sleep(600)
'''
"""A process with a child of its own."""


def names_of_starters(text):
    """The functions of `subprocess` that a text uses to start processes."""
    tree = ast.parse(text)
    modules = {alias.asname or alias.name for node in ast.walk(tree)
               if isinstance(node, ast.Import) for alias in node.names
               if alias.name == 'subprocess'}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in modules and node.attr in STARTERS:
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == 'subprocess':
            yield from STARTERS.intersection(alias.name for alias in node.names)


@pytest.mark.parametrize('text, found', [
    ('import subprocess\nsubprocess.run([])', ['run']),
    ('import subprocess as s\ns.Popen([])', ['Popen']),
    ('from subprocess import PIPE, call', ['call']),
    ('import subprocess\nsubprocess.PIPE\nother.run([])', [])])
def test_what_starts_a_process_is_found(text, found):
    assert list(names_of_starters(text)) == found


def test_one_helper_starts_all_processes():
    tests = ROOT / 'tests'
    found = {path.relative_to(tests).as_posix() for path in tests.rglob('*.py')
             if not path.relative_to(tests).as_posix().startswith(FOREIGN)
             and any(names_of_starters(path.read_text()))}
    assert found == EXCEPTIONS.keys()


@pytest.mark.parametrize('arguments', [[], ['ends']])
def test_a_process_and_its_child_are_gone_when_it_is_needed_no_longer(arguments):
    with groups.running([sys.executable, '-c', TREE, *arguments], stdout=subprocess.PIPE,
                        text=True) as process:
        child = int(process.stdout.readline())
        if arguments:
            process.wait(groups.DEADLINE)
    until_gone([process.pid, child])


@pytest.mark.parametrize('loaded', [False, True])
def test_at_its_deadline_a_process_and_its_child_are_gone_and_what_it_said_is_shown(
        loaded, capsys):
    for deadline in (1, 10, 100):  # On a busy machine it may say nothing in a second.
        with pytest.raises(subprocess.TimeoutExpired) as caught:
            run_python('-c', TREE, deadline=deadline, loaded=loaded)
        if caught.value.stdout:
            break
    until_gone([int(caught.value.stdout)])
    assert caught.value.stdout in capsys.readouterr().out


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_a_process_and_its_child_are_gone_when_the_parent_is_killed(number):
    parent = f'''
import signal, subprocess, sys
from harness import groups
process = groups.spawn([sys.executable, '-c', {TREE!r}], stdout=subprocess.PIPE, text=True)
print(process.pid, process.stdout.readline(), flush=True)
signal.pause()
'''
    with groups.running([sys.executable, '-c', parent], stdout=subprocess.PIPE, text=True, env={
            **os.environ, 'PYTHONPATH': path_with_harness()}) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        process.send_signal(number)
        process.wait(groups.DEADLINE)
        until_gone(pids)


def test_a_process_whose_parent_has_died_already_ends():
    assert groups.run([sys.executable, '-c', 'import os; from harness import groups\n'
                       'groups.die_with_parent(os.getppid()); print(1, flush=True)\n'
                       'groups.die_with_parent(os.getpid()); print(2)'], env={
        **os.environ, 'PYTHONPATH': path_with_harness()}).stdout == '1\n'


def test_a_process_gets_its_input_and_a_failure_can_be_an_error():
    code = 'import sys; text = sys.stdin.read(); print(text); sys.exit(len(text))'
    done = groups.run([sys.executable, '-c', code], input='abc')
    assert (done.returncode, done.stdout, done.stderr) == (3, 'abc\n', '')
    with pytest.raises(subprocess.CalledProcessError):
        groups.run([sys.executable, '-c', code], input='abc', check=True)


def test_no_helper_is_left_as_a_child_of_this_process():
    with groups.running(['sleep', '600']) as process:
        pids = pathlib.Path(f'/proc/self/task/{os.getpid()}/children').read_text().split()
        assert str(process.pid) in pids
        for pid in pids:
            command = pathlib.Path(f'/proc/{pid}/cmdline').read_text()
            assert 'killpg' not in command


def test_a_wait_ends_with_what_is_found_or_names_what_was_not():
    answers = iter([0, '', 'found'])
    assert until(lambda: next(answers), 'an answer') == 'found'
    with pytest.raises(AssertionError, match='.1 s: a miracle'):
        until(lambda: None, 'a miracle', .1)
