"""Prints tracebacks for `etpe run`: the frames of the job in full, frames of libraries folded."""

from __future__ import annotations

import contextlib
import os
import re
import site
import sys
import sysconfig
import traceback
from collections import Counter
from types import TracebackType
from typing import TextIO

_FRAME = re.compile(r'([ |]+)File "([^"]+)", line \d+, in ')
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
    text = ''.join(traceback.TracebackException(type(error), error, frames).format())
    with contextlib.suppress(OSError, ValueError, AttributeError):  # Closed, broken or gone.
        stream = to or sys.stderr
        stream.write(text if folds is None else _with_folds(text, folds))
        stream.flush()


def _folded(indent: str, counts: Counter[str | None]) -> str:
    """The line that says how many frames of each library were folded."""
    (first, number), *others = counts.items()
    return (f'{indent}... {number} frame{"s" if number > 1 else ""} of {first}'
            + ''.join(f', {count} of {name}' for name, count in others) + '\n')


def _with_folds(text: str, folds: Folds) -> str:
    """Folds frames of libraries, also those that TensorFlow writes into messages.

    TensorFlow writes the stack of a node twice, of which one is kept.
    """
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


def _first_part(file: str, root: str) -> str:
    """The installed file or folder of a name that can be imported."""
    return file[len(root):].split(os.sep)[0].removesuffix('.py')
