"""Answers the questions of `oracle`, as the main program of a child process.

Each world is asked in a fork of its own. So what one look-up imports changes no other world, and
nothing that a look-up does, not even ending the process, reaches beyond its world.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..compat import environment, old_python
from . import libraries, lookup
from .facts import Question

PYTHON, KERAS2, RUN, TF1, CONTRIB = WORLDS = 'python', 'keras2', 'run', 'tf1', 'contrib'
"""Plain Python; the same with Keras 2; and `etpe run` without and with its flags."""

OLD = 'old'
"""Python and NumPy with the old names that `etpe run` brings back, whatever its flags are."""


class Request(NamedTuple):
    """What a child is asked.

    Attributes:
      questions: as lists, since they come as JSON.
      scanned: paths of which nothing is imported.
      is_plain: whether it answers for plain Python, and not for the other worlds.
      seconds: after which it is killed, also if nobody waits for it any more.
    """

    questions: Sequence[Sequence[Any]]
    scanned: Sequence[str]
    is_plain: bool
    seconds: int


def main() -> None:
    """Reads a request from standard input, and writes a line of JSON per world to the output."""
    output = os.dup(1)
    os.dup2(2, 1)  # What libraries print is no answer.
    request = Request(**json.load(sys.stdin))
    sys.path[:] = libraries.outside(sys.path, request.scanned)
    questions = sorted((Question(*one) for one in request.questions), key=lookup.order)
    signal.alarm(request.seconds)
    worlds = _plain(questions) if request.is_plain else _restored(questions)
    try:
        for world, asked in worlds:
            _in_fork(lambda: _answer(world, asked, output), request.seconds)
    except Exception as error:
        traceback.print_exc()
        _write(output, {'reason': f'{type(error).__name__}: {error}'})


def _plain(questions: Sequence[Question]) -> Iterator[tuple[str, list[Question]]]:
    """Yields plain Python, first without TensorFlow, in case that it cannot be imported.

    Python is asked again with it, since `import unittest` may use `unittest.mock` then.
    """
    of_tensorflow = [one for one in questions if _needs_tensorflow(one)]
    others = [one for one in questions if not _needs_tensorflow(one)]
    if others:
        yield PYTHON, others
    if of_tensorflow:
        import tensorflow  # noqa: F401
        yield PYTHON, [one for one in questions
                       if libraries.top(one) in libraries.OF_TENSORFLOW | libraries.PYTHON
                       and libraries.top(one) != libraries.PACKAGE]
    if others:
        old_python.put_in_place(lambda line: None)
        yield OLD, others


def _restored(questions: Sequence[Question]) -> Iterator[tuple[str, list[Question]]]:
    """Yields one world after another, as the options of `etpe run` make them."""
    asked = [one for one in questions if _needs_tensorflow(one)]
    environment.prepare()
    import tensorflow  # noqa: F401
    yield KERAS2, asked
    from ..compat.install import install
    install()
    yield RUN, asked
    from ..compat import tf1
    tf1.put_on()
    yield TF1, asked
    from ..compat.contrib import place
    place.put_in_place()
    yield CONTRIB, asked


def _needs_tensorflow(question: Question) -> bool:
    return libraries.top(question) in libraries.OF_TENSORFLOW


def _answer(world: str, questions: Sequence[Question], output: int) -> None:
    _write(output, {'world': world, 'answers': [(one, lookup.answer(one)) for one in questions]})


def _in_fork(work: Callable[[], None], seconds: int) -> None:
    """Does work in a fork, which must not return into the code around this call."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        signal.alarm(seconds)  # A fork inherits no alarm.
        work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _write(output: int, line: Any) -> None:
    text = json.dumps(line).encode() + b'\n'
    while text:
        text = text[os.write(output, text):]
