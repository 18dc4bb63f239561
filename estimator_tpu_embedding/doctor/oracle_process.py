"""Answers the questions of `oracle`, as the main program of a child process.

Each world is asked in a fork of its own. So what one look-up imports changes no other world, and
nothing that a look-up does, not even ending the process, reaches beyond its world.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..compat import environment, old_python, refused_names
from . import libraries
from .findings import Question

PYTHON, KERAS2, RUN, TF1, CONTRIB = WORLDS = 'python', 'keras2', 'run', 'tf1', 'contrib'
"""Plain Python; the same with Keras 2; and `etpe run` without and with its flags."""
OLD = 'old'
"""Python and NumPy with the old names that `etpe run` brings back, whatever its flags are."""


class Request(NamedTuple):
    """What a child is asked."""

    questions: Sequence[Sequence[Any]]  # As lists, since they come as JSON.
    scanned: Sequence[str]  # Paths of which nothing is imported.
    is_plain: bool  # It answers for plain Python, and not for the other worlds.
    seconds: int  # After these it is killed, also if nobody waits for it any more.


class Found(NamedTuple):
    """What one look-up found."""

    lacking: str = ''  # The first name that was not found, with all before it.
    refused: str = ''  # The message of a name that raises when it is used.
    is_examined: bool = True  # More than files were looked at.
    is_module: bool = False

    @property
    def is_there(self) -> bool:
        """Whether all was found."""
        return not self.lacking


def main() -> None:
    """Reads a request from standard input, and writes a line of JSON per world to the output."""
    output = os.dup(1)
    os.dup2(2, 1)  # What libraries print is no answer.
    request = Request(**json.load(sys.stdin))
    sys.path[:] = libraries.outside(sys.path, request.scanned)
    questions = sorted((Question(*one) for one in request.questions), key=order)
    signal.alarm(request.seconds)
    worlds = _plain(questions) if request.is_plain else _restored(questions)
    try:
        for world, asked in worlds:
            _in_fork(lambda: _write(output, {'world': world, 'answers': [
                (one, look_up(one)) for one in asked]}), request.seconds)
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
    tf1.put_in_place()
    yield TF1, asked
    from ..compat.contrib import contrib_modules
    contrib_modules.put_in_place()
    yield CONTRIB, asked


def _needs_tensorflow(question: Question) -> bool:
    return libraries.top(question) in libraries.OF_TENSORFLOW


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


def look_up(question: Question) -> Found:
    """Looks a name up; whatever that raises is part of the answer.

    It goes through modules and classes. What comes after any other object, such as a function or
    the flags of absl, counts as found, since only the object itself could tell.
    """
    return _by_import(question) if libraries.is_imported(question) else _by_files(question)


def order(question: Question) -> tuple[bool, int, Question]:
    """Returns a key that puts first what changes the answers of others least.

    The import of a module makes it an attribute of its package. So attributes come before
    imports, and packages before their modules.
    """
    is_pure = bool(question.names) and not question.is_import
    return not is_pure, question.module.count('.'), question


def _by_import(question: Question) -> Found:
    path, names = question.module, question.names.split('.') if question.names else []
    value, lacking = _imported(path)
    if names and not question.is_import and '.' in lacking:
        # `from a import B; B.c`, of which the scan cannot tell whether B is a module.
        owner, _, _ = lacking.rpartition('.')
        names = path.removeprefix(f'{owner}.').split('.') + names
        (value, lacking), path = _imported(owner), owner
    if lacking:
        return Found(lacking)
    for number, name in enumerate(names):
        if not isinstance(value, (types.ModuleType, type)):
            return Found()
        path = f'{path}.{name}'
        try:
            is_sought = question.is_import and not number and not hasattr(value, name)
            value = importlib.import_module(path) if is_sought and hasattr(value, '__path__') else (
                getattr(value, name))
        except BaseException:  # Modules may raise anything, also `SystemExit`.
            return Found(path)
    return Found(refused=refused_names.message_of(value),
                 is_module=isinstance(value, types.ModuleType))


def _imported(path: str) -> tuple[Any, str]:
    """Returns a module; or nothing, and the first part of its path that cannot be imported."""
    parts, module = path.split('.'), None
    for end in range(1, len(parts) + 1):
        one = '.'.join(parts[:end])
        try:
            module = importlib.import_module(one)
        except BaseException:
            return None, one
    return module, ''


def _by_files(question: Question) -> Found:
    """Says whether a package is installed; only its import would tell which modules it has.

    Of a namespace, of which packages are parts, the part is sought.
    """
    parts = question.module.split('.') + [question.names.partition('.')[0]] * question.is_import
    for end in range(1, len(parts) + 1):
        path = '.'.join(parts[:end])
        try:
            spec = importlib.util.find_spec(path)  # It imports namespaces, which have no code.
        except (ImportError, ValueError, AttributeError):  # A module in memory may have no spec.
            if path in sys.modules:
                break
            spec = None
        if spec is None:
            return Found(path, is_examined=False)
        if spec.origin is not None:
            break
    return Found(is_examined=parts[1:] == [])
