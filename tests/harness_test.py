"""Processes that tests start never outlive them, and waits end."""

import ast
import os
import signal
import subprocess
import sys

import pytest
from harness import groups
from harness.processes import ROOT, path_with_harness, run_python, until_gone

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
