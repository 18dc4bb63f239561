"""The quickstart shows what a person wants to see, and keeps the rest in a log."""

import errno
import importlib
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
