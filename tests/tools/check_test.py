"""The gate tells a defect from an accident, names what ended a process, and leaves nothing behind.

Each test runs real tests of a small checkout, in a session of the gate.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from harness import groups
from harness.parts import soak_except
from harness.processes import ROOT
from harness.tools import load

pytestmark = pytest.mark.serial  # It ends all processes below its own.
TESTS = {
    'steady': 'def test_steady(): pass\n',
    'broken': 'def test_broken(): assert 1 == 2\n',
    'first_time': 'import pathlib\n'
                  'def test_first_time():\n'
                  '    mark = pathlib.Path(__file__).with_suffix(".mark")\n'
                  '    was_there, _ = mark.exists(), mark.touch()\n'
                  '    assert was_there\n',
    'hangs': 'import subprocess, time\n'
             'def test_hangs():\n'
             '    subprocess.Popen(["sleep", "1001"])\n'
             '    time.sleep(1000)\n'
             'def test_after_it(): pass\n',
    'dies': 'import os, signal\n'
            'def test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n',
    'dies_at_import': 'import os\nos._exit(3)\n',
    'exact': 'import pytest\n'
             '@pytest.mark.no_rerun\n'
             'def test_exact(): assert 1 == 2\n',
    'skipped': 'import pytest\n'
               'def test_skipped(): pytest.skip("no room")\n',
    'many': 'import pytest\n'
            '@pytest.mark.parametrize("number", range(40))\n'
            'def test_many(number): assert number < 0\n'}


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """`gate(*names)` runs those tests as the gate does; returns (the check, whether it passed)."""
    check = load('check')
    session = check.gate_session
    session.adopt_orphans()
    tests = tmp_path / 'checkout' / 'tests'
    tests.mkdir(parents=True)
    settings = (session.ROOT / 'setup.cfg').read_text().replace('timeout = 600', 'timeout = 3')
    (tests.parent / 'setup.cfg').write_text(settings)
    (tests / 'conftest.py').write_text(
        f'import sys\nsys.path.append({str(session.TESTS)!r})\n'
        "pytest_plugins = ['harness.recorder']\n")
    (tests / 'flaky.md').write_text('')
    logs = tmp_path / 'logs'
    logs.mkdir()
    for module in (session, check):
        monkeypatch.setattr(module, 'ROOT', tests.parent)
    monkeypatch.setattr(check, 'FLAKY', tests / 'flaky.md')
    monkeypatch.setattr(session, 'LOGS', logs)

    def run(*names, options=()):
        for name in names:
            (tests / f'{name}_test.py').write_text(TESTS[name])
        folder = tmp_path / 'folder'
        folder.mkdir(exist_ok=True)
        here = session.Session(folder, logs / 'now.log')
        here.binaries = pathlib.Path(sys.executable).parent
        made = check.Check(here)
        try:
            made.tests('some', tests, options=options)
            made.try_again()
        except session.Ended:
            made.close()
            return made, False
        return made, made.close()

    return run


def test_what_passes_passes(gate):
    check, passed = gate('steady', 'skipped')
    assert passed and check.closing_line().startswith('1 passed, 1 skipped in ')


def test_a_test_that_always_fails_makes_the_gate_fail(gate, capsys):
    check, passed = gate('steady', 'broken')
    assert not passed and check.closing_line().startswith('1 failed, 1 passed in ')
    assert 'FAILED tests/broken_test.py::test_broken - assert 1 == 2' in capsys.readouterr().out


def test_a_test_that_fails_the_first_time_only_is_named(gate, capsys):
    check, passed = gate('first_time')
    assert passed and check.closing_line().startswith('1 passed in ')
    assert 'FLAKY tests/first_time_test.py::test_first_time\n' in capsys.readouterr().out


@pytest.mark.parametrize('is_alone', soak_except([False, True], 1))
def test_a_test_that_hangs_is_named_and_leaves_no_process(gate, tmp_path, is_alone):
    check, passed = gate('hangs', 'steady', options=() if is_alone else load('check').BY_FILE)
    assert not passed and list(check.failed) == ['tests/hangs_test.py::test_hangs']
    assert check.closing_line().startswith('1 failed, 2 passed in ')  # With the next of its file.
    log = (tmp_path / 'logs' / 'now.log').read_text()
    assert log.count('starts tests/hangs_test.py::test_hangs') == 2  # With its second try.
    assert 'sleep 1001' not in '\n'.join(load('check').gate_session.descendants().values())


def test_a_worker_that_is_killed_is_named_with_its_test(gate, tmp_path):
    check, passed = gate('dies', 'steady', options=load('check').BY_FILE)
    assert not passed and list(check.failed) == ['tests/dies_test.py::test_dies']
    log = (tmp_path / 'logs' / 'now.log').read_text()
    assert 'starts tests/dies_test.py::test_dies' in log


def test_a_part_without_a_test_fails(gate):
    assert not gate()[1]


def results(tmp_path, *facts):
    path = tmp_path / 'record'
    path.write_text(''.join(f'{json.dumps(fact)}\n' for fact in facts) + '{"started": "tor')
    return load('gate_session').Results(path)


def passed(test, phase='teardown', outcome='passed'):
    return {'ended': test, 'phase': phase, 'outcome': outcome, 'seconds': 1., 'why': 'x'}


def test_a_worker_that_ends_without_a_test_fails_and_one_that_a_test_ended_does_not_count_twice(
        tmp_path):
    facts = [{'collected': ['a', 'b']}, {'started': 'a'}, passed('a'), {'down': 'gw0'}]
    assert list(results(tmp_path, *facts).failed) == ['worker gw0']
    crash = [{'started': 'b'}, passed('b', phase='???', outcome='failed')]
    found = results(tmp_path, *facts, *crash)
    assert (list(found.failed), found.passed, found.running) == (['b'], ['a'], [])


RUN = '''
import sys
sys.path.insert(0, {tools!r})
import gate_session
gate_session.LEAST_FREE = {least}
try:
    with gate_session.session('x') as run:
        run.end_after({minutes})
        run.call([sys.executable, '-c', {child!r}])
except gate_session.Ended as error:
    print('ended:', error)
'''
SECONDS = str(10**6 + os.getpid())  # Nobody else sleeps so long.
CHILD = f'import subprocess, time; subprocess.Popen(["sleep", "{SECONDS}"], ' \
        'start_new_session=True); print("it runs", flush=True); time.sleep(1003)'


@contextlib.contextmanager
def program(tmp_path, least=0., minutes=30.):
    text = RUN.format(tools=str(ROOT / 'tools'), least=least, minutes=minutes, child=CHILD)
    with groups.running([sys.executable, '-c', text], stdout=subprocess.PIPE, text=True, env={
            **os.environ, 'HOME': str(tmp_path), 'TMPDIR': str(tmp_path)}) as process:
        yield process


def sleepers():
    """The processes that the program above starts in a session of their own."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f'sleep\0{SECONDS}\0'.encode():
                found.append(int(path.parent.name))
    return found


def test_the_watchdog_ends_everything_and_says_what_was_running(tmp_path):
    with program(tmp_path, minutes=.1) as process:
        printed = process.stdout.read()
    assert 'ended: the watchdog ended the run after 0.1 minutes. Running were:\n  pid' in printed
    assert f'sleep {SECONDS}' in printed
    assert not sleepers() and not list(tmp_path.glob('etpe-check-*'))


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_neither_process_nor_folder(tmp_path, number):
    with program(tmp_path) as process:
        assert [process.stdout.readline() for _ in range(2)][1] == 'it runs\n'
        process.send_signal(number)
        process.wait()
    if number == signal.SIGKILL:  # The next run removes the folder, which that one could not.
        with program(tmp_path, least=1e18) as process:
            process.wait()
        for pid in sleepers():
            os.kill(pid, signal.SIGKILL)
    else:
        assert not sleepers()
    assert not list(tmp_path.glob('etpe-check-*'))
