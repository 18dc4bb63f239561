"""A program that `harness.loaded` forks finds what a fresh interpreter gives it, and TensorFlow."""

import os
import signal
import subprocess

import pytest
from harness.processes import run_python, until_gone

PROGRAM = '''
import atexit, os, sys
atexit.register(print, 'the end')
print(__name__, sys.argv, sys.path[0], os.getcwd(), os.environ['WORD'], sys.stdin.read())
print(sys.modules['__main__'].PROGRAM, file=sys.stderr)
sys.exit(int(sys.argv[-1]))
'''.replace('import', 'PROGRAM = "a name of its own"\nimport', 1)


@pytest.mark.parametrize('kind', ['-c', '-m', 'path'])
@pytest.mark.parametrize('status', [0, 3])
def test_a_fork_is_as_a_fresh_interpreter(tmp_path, kind, status):
    (tmp_path / 'program.py').write_text(PROGRAM)
    command = {'-c': ['-c', PROGRAM], '-m': ['-m', 'program'], 'path': ['program.py']}[kind]
    fresh, forked = [
        run_python(*command, 'x', status, cwd=tmp_path, loaded=loaded, WORD='word',
                   PYTHONPATH=None) for loaded in (False, True)]
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        fresh.returncode, fresh.stdout, fresh.stderr)
    assert forked.returncode == status and forked.stdout.endswith('word \nthe end\n')


def test_a_fork_ends_at_its_deadline_and_the_next_one_runs():
    with pytest.raises(subprocess.TimeoutExpired):
        run_python('-c', 'import time; time.sleep(60)', loaded=True, deadline=.2)
    assert run_python('-c', 'print(1)', loaded=True).stdout == '1\n'


def test_when_the_process_that_forks_has_died_another_one_takes_its_place():
    with pytest.raises(AssertionError, match='has ended with status -9'):
        run_python('-c', 'import os, signal; os.kill(os.getppid(), signal.SIGKILL); signal.pause()',
                   loaded=True)
    server = int(run_python('-c', 'import os; print(os.getppid())', loaded=True).stdout)
    os.kill(server, signal.SIGKILL)
    until_gone([server])
    assert run_python('-c', 'print(1)', loaded=True).stdout == '1\n'
