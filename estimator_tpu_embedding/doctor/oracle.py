"""Asks the installed libraries about all names at once, in child processes with a deadline.

A name of a module is found if the module has it when nothing else has been imported than what
other questions import. So a name that a script reaches through a module that only another script
imports counts as found.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..compat import environment
from . import libraries, oracle_process
from .findings import Answer, Question
from .oracle_process import Found

DEADLINE = 120.
"""Seconds for all questions. Then those without an answer are unknown."""

_CODE = ('import sys; sys.path.insert(0, {root!r}); from {package}.doctor import oracle_process; '
         'sys.path.remove({root!r}); oracle_process.main()')


class Answers(NamedTuple):
    """What the libraries said."""

    found: Mapping[Question, Answer]
    reason: str = ''  # Why some were not answered.


def ask(questions: Iterable[Question], scanned: Sequence[str], deadline: float = DEADLINE
        ) -> Answers:
    """Asks about all questions within `deadline` seconds; nothing scanned is imported."""
    asked = set(questions)
    if not asked:
        return Answers({})
    needs_tensorflow = any(libraries.top(one) in libraries.OF_TENSORFLOW for one in asked)
    folders = [os.path.abspath(one) for one in scanned]
    requests = [oracle_process.Request(sorted(asked), folders, is_plain, max(1, round(deadline)))
                for is_plain in ((True, False) if needs_tensorflow else (True,))]
    worlds: dict[str, dict[Question, Found]] = {}
    reasons: list[str] = []
    for lines, ended in _run(requests, deadline):
        for line in lines:
            if 'reason' in line:
                ended = line['reason']
                continue
            worlds.setdefault(line['world'], {}).update(
                (Question(*question), Found(*found)) for question, found in line['answers'])
        reasons += [ended] * bool(ended)
    found = {one: answer for one in asked if (answer := _joined(one, worlds)) is not None}
    return Answers(found, '; '.join(dict.fromkeys(reasons)) or 'a look-up ended its process'
                   if len(found) < len(asked) else '')


def _joined(question: Question, worlds: Mapping[str, Mapping[Question, Found]]) -> Answer | None:
    """Returns the answer of all worlds; `None` unless each that matters has answered."""
    package = libraries.top(question)
    names = (oracle_process.WORLDS if package in libraries.OF_TENSORFLOW
             else (oracle_process.PYTHON,) * 2 + (oracle_process.OLD,) * 3)
    if package == libraries.PACKAGE:  # Without Keras 2 this package refuses to work.
        names = (oracle_process.KERAS2, *oracle_process.WORLDS[1:])
    parts = [worlds.get(name, {}).get(question) for name in names]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    python, keras2, run, tf1, contrib = (part.is_there for part in found)
    is_anywhere = any(part.is_there for part in found)
    return Answer(
        python, run, tf1, contrib,
        refused=next((part.refused for part in found if part.refused), ''),
        lacking='' if is_anywhere else max((part.lacking for part in found), key=len),
        keras2=keras2, is_examined=found[-1].is_examined,
        is_module=any(part.is_module for part in found))


def _run(requests: Sequence[oracle_process.Request], deadline: float
         ) -> list[tuple[list[Any], str]]:
    """Returns the lines of each child, and why it ended if it did not end by itself."""
    root = str(pathlib.Path(__file__).resolve().parent.parent.parent)
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(len(requests), 'ask'))
        children = []
        for request in requests:
            children.append(subprocess.Popen(
                [sys.executable, '-P', '-c', _CODE.format(root=root, package=libraries.PACKAGE)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment.of_plain_child(functools.partial(
                    libraries.outside, scanned=request.scanned)), process_group=0))
            stack.callback(_kill, children[-1])  # Before the pool awaits its threads.
        return list(pool.map(_lines_of, children, requests, [deadline] * len(children)))


def _lines_of(child: subprocess.Popen[bytes], request: oracle_process.Request, deadline: float
              ) -> tuple[list[Any], str]:
    ended = ''
    try:
        output, errors = child.communicate(json.dumps(request._asdict()).encode(), deadline)
    except subprocess.TimeoutExpired:
        _kill(child)
        output, errors = child.communicate()
        ended = f'the installed libraries did not answer within {deadline:g} s'
    lines = output.split(b'\n')[:-1]  # A line without an end is not whole.
    if not ended and child.returncode:
        last = errors.decode(errors='replace').strip().rpartition('\n')[2]
        ended = f'the process that asked them ended with status {child.returncode}: {last}'
    return [json.loads(line) for line in lines], ended


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kills a child with its forks, if it still runs."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
