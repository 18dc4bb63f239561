"""The quickstart shows what a person wants to see, and keeps the rest in a log."""

import errno
import importlib
import pathlib
import sys

import pytest
from harness.processes import ROOT, run_python

COMMAND = '''
import sys
for line in ("I1122 loss = 0.5, step = 100", "[etpe] train: 100 steps", "I1122 saved"):
    print(line, file=sys.stderr)
print("accuracy 0.85")
sys.exit(int(sys.argv[1]))
'''


@pytest.fixture
def quickstart(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'tools'))
    return importlib.import_module('quickstart')


def test_runs_are_shown_and_logs_are_kept(quickstart, tmp_path, capsys):
    log = tmp_path / 'log.txt'
    assert quickstart.run(log, sys.executable, '-c', COMMAND, 0) == 'accuracy 0.85\n'
    assert capsys.readouterr().out == 'train: 100 steps\n'
    assert log.read_text().splitlines() == [
        'I1122 loss = 0.5, step = 100', '[etpe] train: 100 steps', 'I1122 saved']


def test_a_failure_ends_it_and_names_the_log(quickstart, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        quickstart.run(tmp_path / 'log.txt', sys.executable, '-c', COMMAND, 3)
    assert ended.value.code == 3
    shown = capsys.readouterr().out
    assert 'I1122 saved' in shown and 'accuracy 0.85' in shown
    assert shown.endswith(f'exit status 3; the whole log is in {tmp_path}/log.txt\n')


@pytest.mark.parametrize('flags, wanted', [
    ([], ['etpe', 'run', '--hosts', '2', '--cores', '2']),
    (['--cluster'], ['alone', 'etpe', 'run', '--processes', '2', '--cores', '2']),
    (['--cluster', '--expose'], ['etpe', 'run', '--processes', '2', '--expose', '--cores', '2'])])
def test_two_hosts_are_emulated_or_processes(quickstart, monkeypatch, tmp_path, flags, wanted):
    commands = []
    monkeypatch.setattr(sys, 'argv', ['quickstart.py', *flags])
    monkeypatch.setattr(quickstart.environment, 'ensure', lambda *_, **__: pathlib.Path(''))
    monkeypatch.setattr(quickstart.private_network, 'before', lambda python: ['alone'])
    monkeypatch.setattr(quickstart.tempfile, 'mkdtemp', lambda **_: str(tmp_path))
    (tmp_path / 'export' / '1').mkdir(parents=True)
    monkeypatch.setattr(quickstart, 'run', lambda log, *command: commands.append(
        [str(word) for word in command]) or '')
    quickstart.main()
    assert commands[0][:len(wanted)] == wanted
    assert commands[1][-1] == str(tmp_path / 'export' / '1')


ALONE = '''
import socket
listener = socket.create_server(("127.0.0.1", 0))
socket.create_connection(listener.getsockname()).close()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
    print(other.connect_ex(("192.0.2.1", 9)))  # To an address of documents; nothing is sent.
'''


def test_a_private_network_has_loopback_alone(quickstart):
    before = quickstart.private_network.before(sys.executable)
    if not before:
        pytest.skip('this machine gives no process a network of its own')
    done = run_python('-c', ALONE, before=before)
    assert done.stdout == f'{errno.ENETUNREACH}\n'
