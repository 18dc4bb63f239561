"""Tracebacks as a user of `etpe run` reads them: the frames of the job, libraries folded."""

from __future__ import annotations

import contextlib
import itertools
import os
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
"""Of frames and folded lines: what is shown of a traceback that has more, at either end."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Folds:
    """Says which library a file is of; `None` for those of the job."""

    def __init__(self, program: str):
        """Knows the folders of this Python.

        Args:
          program: the file that runs; what is beside it is the job's, also among the libraries.
        """
        self._program = os.path.abspath(program)
        self._beside = os.path.dirname(self._program)
        packages = {*site.getsitepackages(), site.getusersitepackages(),
                    *[sysconfig.get_path(kind) for kind in ('purelib', 'platlib')]}
        python = {sysconfig.get_path(kind) for kind in ('stdlib', 'platstdlib')}
        self._packages = [os.path.join(path, '') for path in packages]
        self._python = [os.path.join(path, '') for path in python]

    def library_of(self, file: str) -> str | None:
        """The library that a file of a frame belongs to.

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
    """Prints an error as Python does, with what caused it; its message comes last.

    Args:
      error: what is shown.
      frames: its traceback, from where the job begins.
      folds: knows the libraries; `None` shows all frames.
      to: where it goes; standard error if `None`.
    """
    found = traceback.TracebackException(type(error), error, frames)
    if folds is not None:
        _fold(found, folds)
    with contextlib.suppress(OSError, ValueError):  # Where standard error is closed or broken.
        print(*found.format(), sep='', end='', file=to or sys.stderr, flush=True)


def fold_in_threads(folds: Folds) -> None:
    """Has errors that end a thread shown so too, unless the job says otherwise.

    The header is that of Python. Whoever replaced `threading.excepthook` before is not disturbed.
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
            print(f'Exception in thread {name}:', file=sys.stderr, flush=True)
        show(args.exc_value, args.exc_traceback, folds)

    threading.excepthook = shown


class _Folded(traceback.StackSummary):
    """Frames as they are shown: an item may be several lines, and the line of many frames."""

    def format(self, **kwargs: Any) -> list[str]:
        """The items."""
        return list(map(str, self))


def _fold(found: traceback.TracebackException, folds: Folds) -> None:
    """Folds the frames of an error, and of all that it comes from or consists of."""
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
    """The frames of the job as Python shows them, and a line for libraries between them."""
    for is_ours, group in itertools.groupby(
            stack, lambda frame: folds.library_of(frame.filename) is None):
        frames = list(group)
        if is_ours:
            yield from traceback.StackSummary.from_list(frames).format()
            continue
        counts = Counter(folds.library_of(frame.filename) for frame in frames)
        (first, number), *others = counts.items()
        yield (f'  ... {number} frame{"s" if number > 1 else ""} of {first}'
               + ''.join(f', {count} of {name}' for name, count in others) + '\n')


def _shortened(blocks: list[str]) -> list[str]:
    if len(blocks) <= _MOST_BLOCKS:
        return blocks
    left = len(blocks) - _FIRST - _LAST
    return [*blocks[:_FIRST], f'  ... {left} more like these; --traceback full shows all\n',
            *blocks[-_LAST:]]


def _first_part(file: str, root: str) -> str:
    """What is installed by the name under which it is imported."""
    return file[len(root):].split(os.sep)[0].removesuffix('.py')
