"""The quickstart shows what a person wants to see, and keeps the rest in a log."""

import importlib
import sys

import pytest
from harness.processes import ROOT

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


def test_a_terminal_shows_the_newest_step(quickstart, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, 'isatty', lambda: True)
    quickstart.run(tmp_path / 'log.txt', sys.executable, '-c', COMMAND, 0)
    erase = '\r\x1b[K'
    assert capsys.readouterr().out == (
        f'{erase}  step 100, loss 0.5{erase}train: 100 steps\n{erase}')


def test_a_failure_ends_it_and_names_the_log(quickstart, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        quickstart.run(tmp_path / 'log.txt', sys.executable, '-c', COMMAND, 3)
    assert ended.value.code == 3
    shown = capsys.readouterr().out
    assert 'I1122 saved' in shown and 'accuracy 0.85' in shown
    assert shown.endswith(f'exit status 3; the whole log is in {tmp_path}/log.txt\n')
