"""Prints tracebacks for `etpe run`: the frames of the job in full, frames of libraries folded."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import site
import sys
import sysconfig
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TextIO

_MOST_BLOCKS, _FIRST, _LAST = 30, 10, 10
"""Numbers of blocks: the most that are shown, and those at each end of a longer traceback."""
_FRAME = re.compile(r'( +)File "([^"]+)", line \d+, in ')
_REPEATED = re.compile(r'(defined at \(most recent call last\):\n.*?)'
                       r"\n\nOriginal stack trace for '[^']*':\n(?: +File [^\n]*(?:\n|\Z))+",
                       re.DOTALL)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Folds:
    """Knows which library a file belongs to."""

    def __init__(self, program: str):
        """Reads the folders of this Python.

        Args:
          program: the file that runs. Files beside it belong to the job, even among the libraries.
        """
        self._program = os.path.abspath(program)
        self._beside = os.path.dirname(self._program)
        packages = {*site.getsitepackages(), site.getusersitepackages(),
                    *[sysconfig.get_path(kind) for kind in ('purelib', 'platlib')]}
        python = {sysconfig.get_path(kind) for kind in ('stdlib', 'platstdlib')}
        self._packages = [os.path.join(path, '') for path in packages]
        self._python = [os.path.join(path, '') for path in python]

    def library_of(self, file: str) -> str | None:
        """Returns the library of a frame's file, or `None` if the file belongs to the job.

        >>> folds = Folds('/home/me/job.py')
        >>> folds.library_of('<frozen runpy>'), folds.library_of('/home/me/input.py')
        ('python', None)
        """
        if file.startswith('<frozen '):
            return 'python'
        if file == self._program or not os.path.isabs(file):
            return None
        if file.startswith(os.path.join(_PACKAGE, '')):
            return os.path.basename(_PACKAGE)
        for root in self._packages:
            if file.startswith(root):
                is_beside = self._beside.startswith(root) and file.startswith(
                    os.path.join(self._beside, ''))
                return None if is_beside else _first_part(file, root)
        return 'python' if any(file.startswith(root) for root in self._python) else None


def show(error: BaseException, frames: TracebackType | None, folds: Folds | None,
         to: TextIO | None = None) -> None:
    """Prints an error as Python does, with its causes. Its message comes last.

    Args:
      error: to print.
      frames: its traceback, from the start of the job on.
      folds: knows the libraries; if it is `None`, all frames are shown.
      to: a stream; if it is `None`, standard error.
    """
    found = traceback.TracebackException(type(error), error, frames)
    if folds is not None:
        _fold(found, folds)
    with contextlib.suppress(OSError, ValueError, AttributeError):  # Closed, broken or gone.
        stream = to or sys.stderr
        text = ''.join(found.format())
        stream.write(text if folds is None else _with_folded_messages(text, folds))
        stream.flush()


def fold_in_threads(folds: Folds) -> None:
    """Makes errors that end a thread print in the same way, unless the job has a hook of its own.

    The header is Python's. A `threading.excepthook` that the job set before stays in place.
    """
    original: Callable[[Any], object] = threading.excepthook
    if original is not threading.__excepthook__:
        return

    def shown(args: Any) -> None:
        if issubclass(args.exc_type, SystemExit) or args.exc_value is None or sys.stderr is None:
            original(args)
            return
        name = args.thread.name if args.thread is not None else threading.get_ident()
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f'Exception in thread {name}:\n')
        show(args.exc_value, args.exc_traceback, folds)

    threading.excepthook = shown


class _Folded(traceback.StackSummary):
    """Frames as text. An item has one or more lines; one line stands for many folded frames."""

    def format(self, **kwargs: Any) -> list[str]:
        """The items."""
        return list(map(str, self))


def _fold(found: traceback.TracebackException, folds: Folds) -> None:
    """Folds the frames of an error, of its causes, and of the errors of a group."""
    seen: set[int] = set()
    waiting: list[traceback.TracebackException | None] = [found]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if one.stack is not None:
            one.stack = _Folded(_shortened([*_blocks(one.stack, folds)]))  # type: ignore[arg-type]
        waiting += [one.__cause__, one.__context__, *(getattr(one, 'exceptions', None) or [])]


def _blocks(stack: traceback.StackSummary, folds: Folds) -> Iterator[str]:
    """The frames of the job as Python shows them, with one line for libraries between them."""
    for is_ours, group in itertools.groupby(
            stack, lambda frame: folds.library_of(frame.filename) is None):
        frames = list(group)
        if is_ours:
            yield from traceback.StackSummary.from_list(frames).format()
            continue
        yield _folded('  ', Counter(folds.library_of(frame.filename) for frame in frames))


def _folded(indent: str, counts: Counter[str | None]) -> str:
    """The line that says how many frames of each library were folded."""
    (first, number), *others = counts.items()
    return (f'{indent}... {number} frame{"s" if number > 1 else ""} of {first}'
            + ''.join(f', {count} of {name}' for name, count in others) + '\n')


def _with_folded_messages(text: str, folds: Folds) -> str:
    """Folds frames of libraries that TensorFlow writes into messages. Each stack appears once."""
    kept: list[str] = []
    counts: Counter[str | None] = Counter()
    indent = ''
    for line in _REPEATED.sub(r'\1\n', text).splitlines(keepends=True):
        frame = _FRAME.match(line)
        library = folds.library_of(frame[2]) if frame is not None else None
        if frame is not None and library is not None:
            indent = frame[1]
            counts[library] += 1
        elif not counts or frame is not None or not line.startswith(f'{indent} '):
            if counts:
                kept.append(_folded(indent, counts))
                counts.clear()
            kept.append(line)
    return ''.join([*kept, *([_folded(indent, counts)] if counts else [])])


def _shortened(blocks: list[str]) -> list[str]:
    if len(blocks) <= _MOST_BLOCKS:
        return blocks
    left = len(blocks) - _FIRST - _LAST
    return [*blocks[:_FIRST], f'  ... {left} more like these; --traceback full shows all\n',
            *blocks[-_LAST:]]


def _first_part(file: str, root: str) -> str:
    """The installed file or folder of a name that can be imported."""
    return file[len(root):].split(os.sep)[0].removesuffix('.py')
