"""The line of progress: what it says, and that it leaves all else on the terminal as it is."""

import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import textwrap

import pytest
from harness import groups
from harness.waiting import until

from estimator_tpu_embedding.cli import status_line
from estimator_tpu_embedding.runner.progress import RunReport

ERASE = '\r\x1b[K'


class Terminal(io.StringIO):
    """A terminal of 80 columns whose time is set by the test."""

    now = 0.

    def clock(self):
        return self.now


@pytest.fixture
def terminal():
    return Terminal()


@pytest.fixture
def line(terminal, monkeypatch):
    made = status_line.StatusLine(terminal, terminal.clock)
    monkeypatch.setattr(made, '_may_write', lambda: True)
    return made


def run(verb='train', **kwargs):
    return RunReport(verb, **{'batch_size': 8, **kwargs})


def test_a_run_is_shown_after_two_seconds_and_gone_when_it_is_over(line, terminal):
    going = run(first_step=100, last_step=200)
    for second, steps in ((0, 1), (1.9, 10), (3, 31), (3.1, 32)):
        terminal.now, going.steps, going.loss = second, steps, .25
        line.tell(going)
    # 30 steps in 3 seconds, and 200 - 131 left
    assert terminal.getvalue() == (
        f'{ERASE}train: step 131 of 200, 10.0 steps/s, 80 examples/s, loss 0.25, 0:00:06 left\r')
    going.is_over = True
    line.tell(going)
    assert terminal.getvalue().endswith(f'left\r{ERASE}')


def test_of_nested_runs_the_one_that_steps_is_shown(line, terminal):
    outer, inner = run(steps=1), run('evaluate', steps=1, last_step=9)
    for now, one in ((0, outer), (3, outer), (4, inner), (7, inner), (8, outer), (11, outer)):
        terminal.now = now
        line.tell(one)
    shown = re.findall(r'K(\w+): step', terminal.getvalue())
    assert shown == ['train', 'evaluate', 'train']


def test_what_a_script_prints_erases_the_line_and_an_unfinished_line_keeps_it_away(line, terminal):
    going = run()
    line.tell(going)
    with line.beside():
        write = terminal.write
        for now, text in ((3, 'a\n'), (4, '\r50 %'), (5, '\n')):
            terminal.now = now
            line.tell(going)
            line._write_beside(write, text)
        terminal.now = 6
        line.tell(going)
    said = terminal.getvalue()
    shown = 'train: step 0, 0.0 steps/s, 0 examples/s\r'
    assert said == (f'{ERASE}{shown}{ERASE}a\n' f'{ERASE}{shown}{ERASE}\r50 %' '\n'
                    f'{ERASE}{shown}{ERASE}')


@pytest.mark.parametrize('columns, expected', [
    (200, 'train: step 5, 2.0 steps/s, 16 examples/s, loss 0.5'),
    (30, 'train: step 5, 2.0 steps/s'),
    (10, 'train: ste'), (0, '')])
def test_a_narrow_terminal_gets_what_matters_most(columns, expected):
    parts = status_line.parts_of(run(steps=5, loss=.5), 2.)
    assert status_line.fitting(parts, columns) == expected


SCRIPT = '''
    import sys, types
    from estimator_tpu_embedding.cli import status_line
    status_line._SECONDS_UNTIL_SHOWN = status_line._SECONDS_BETWEEN = 0.
    watchers = []
    report = types.SimpleNamespace(verb='train', batch_size=8, first_step=0, steps=0,
                                   last_step=9, loss=None, is_over=False)
    original = sys.stdout.write
    with status_line.shown(watchers.append):
        for _ in range(3):
            report.steps += 1
            for watcher in watchers:
                watcher(report)
            print('out')
            print('err', file=sys.stderr)
            sys.stdout.flush()
    print('end', watchers[-1:] in ([], [None]), sys.stdout.write == original)
'''


def seen(script, terminals, term, columns=60):
    """What appears on a terminal, with the streams of a process that are `terminals`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    found = []

    def has_ended():
        while select.select([ours], [], [], 0)[0]:
            try:
                found.append(os.read(ours, 4096))
            except OSError:  # So a terminal says that nobody holds its other end.
                return True
        return process.poll() is not None

    with groups.running(
            [sys.executable, '-c', f'import fcntl, termios; '
             f'fcntl.ioctl({theirs}, termios.TIOCSCTTY, 0); exec({textwrap.dedent(script)!r})'],
            pass_fds=[theirs], env={**os.environ, 'TERM': term, 'NO_COLOR': '1'},
            **{name: theirs if name in terminals else subprocess.PIPE for name in (
                'stdout', 'stderr')}) as process:
        os.close(theirs)
        until(has_ended, 'the end of a script')
        rest = b''.join(part or b'' for part in process.communicate(timeout=groups.DEADLINE))
    os.close(ours)
    assert process.returncode == 0, (found, rest)
    return b''.join(found).decode().replace('\r\n', '\n'), rest.decode()


@pytest.mark.parametrize('terminals, term, is_shown', [
    (['stdout', 'stderr'], 'xterm', True), (['stderr'], 'xterm', True),
    (['stdout'], 'xterm', False), (['stdout', 'stderr'], 'dumb', False)])
def test_on_a_real_terminal_nothing_else_is_lost_or_mixed_up(terminals, term, is_shown):
    found, rest = seen(SCRIPT, terminals, term)
    assert ('train: step 3 of 9' in found) == is_shown
    assert '\x1b' not in rest and 'step' not in rest
    # A terminal forgets what was between two erasures.
    left = re.sub(r'\r\x1b\[K(train: [^\r\n]*\r)?', '', found)
    both = left.splitlines() + rest.splitlines()
    assert sorted(both) == sorted([*['out', 'err'] * 3, 'end True True']), found
    assert '\x1b' not in left
    assert all(len(line) < 60 for line in re.findall('train: [^\r]*', found))
