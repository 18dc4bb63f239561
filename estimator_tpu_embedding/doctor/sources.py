"""Finds the files of a project and reads them; what a stranger wrote causes no traceback."""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..compat import notebook
from ..errors import EteError, bytes_text, shown
from ..proto import files
from .findings import Finding, Place

MAX_BYTES = 2**20
"""The most bytes of source in one file. Python takes up to 900 bytes of memory for each."""
MAX_NOTEBOOK_BYTES = 2**26
"""The most bytes of a notebook, most of which are pictures."""
_TOO_LARGE = f'it has more than {bytes_text(MAX_BYTES)} of source, and no more is examined'
_SLOW_CODECS = frozenset({'punycode', 'idna'})
"""Codecs that take a time which grows with the square of the size."""
_LEFT_OUT = {
    'node_modules': 'packages of Node.js', '__pycache__': 'compiled files',
    'build': 'a folder of a build', 'dist': 'a folder of a build', '_build': 'a folder of a build',
    'site-packages': 'installed packages', 'dist-packages': 'installed packages'}
_OF_ENVIRONMENTS = ('pyvenv.cfg', 'conda-meta')
_RUNS_PYTHON = re.compile(
    r'%(load|lprun|memit|mprun|prun|pylab|run|time|timeit)\b|%%(python|script)|!\s*python\d*\s+-c')
"""Lines for IPython that run Python."""


class Found(NamedTuple):
    """Files to scan, as the user reaches them, each once, in order."""

    files: Sequence[str]
    left_out: Sequence[tuple[str, str]] = ()  # Folders and files not to be scanned, and why.
    problems: Sequence[Finding] = ()  # Paths that the user named and nobody can read (E132).
    roots: Sequence[str] = ()  # Folders that the user named, and those of files that they named.


class Source(NamedTuple):
    """The text of one file.

    Attributes:
      cells: the text of a Python file, or of each code cell of a notebook, with `pass` for lines of
        IPython. Lines end in a line feed.
      problems: why there is no text (E132), or none of a cell, and what IPython runs (W202).
    """

    path: str
    cells: Sequence[str]
    is_notebook: bool = False
    problems: Sequence[Finding] = ()


def find(paths: Iterable[str]) -> Found:
    """Finds Python files and notebooks below some paths, and those named, whatever their name is.

    >>> find(['/no/such/file.py']).problems[0].code
    'E132'
    """
    chosen: dict[str, str] = {}  # By real path, the path as the user reaches it.
    left_out: dict[tuple[str, str], None] = {}
    problems: list[Finding] = []
    roots: dict[str, None] = {}
    for path in map(os.path.normpath, paths):
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            problems.append(unreadable(path, why or type(error).__name__))
            continue
        roots[path if is_folder else os.path.dirname(path) or '.'] = None
        for one, reason in _walk(path, problems) if is_folder else [(path, '')]:
            if reason:
                left_out[one, reason] = None
            else:
                chosen.setdefault(os.path.realpath(one), one)
    return Found(tuple(chosen.values()), tuple(left_out), tuple(problems), tuple(roots))


def read(path: str) -> Source:
    """Reads one file as Python would; what cannot be read is one of its problems."""
    is_notebook = path.endswith('.ipynb')
    try:
        if is_notebook:
            return _notebook(path)
        with files.open_regular(path, follow=True) as stream:
            content = bytes(files.read_at_most(stream, MAX_BYTES + 1))
        if len(content) > MAX_BYTES:
            raise ValueError(_TOO_LARGE)
        return Source(path, (decoded(content),))
    except OSError as error:
        why = error.strerror or type(error).__name__
    except SyntaxError as error:  # The encoding that it names does not exist.
        why = str(error.msg)
    except (EteError, LookupError, ValueError, RecursionError, MemoryError) as error:
        why = str(error) or type(error).__name__
    return Source(path, (), is_notebook, (unreadable(path, why),))


def decoded(content: bytes) -> str:
    """Returns the text of a Python file: in the encoding that it names, or in UTF-8.

    Raises:
      SyntaxError: if it names no encoding that Python knows.
      ValueError: if it is not in that encoding.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    name = codecs.lookup(encoding).name
    if name in _SLOW_CODECS:
        raise ValueError(f'the encoding {name} is not read here')
    return with_line_feeds(content.decode(encoding))


def with_line_feeds(text: str) -> str:
    """Returns a text whose lines end as Python's parser sees it."""
    return text.replace('\r\n', '\n').replace('\r', '\n')


def unreadable(path: str, why: str, cell: int = 0) -> Finding:
    """Returns the finding E132 about a file or cell."""
    place = Place(path, 1, 1, 1, 1, cell)
    return Finding('E132', place, 'file', '', f'it cannot be read: {shown(why, 200)}', 'unknown')


def _notebook(path: str) -> Source:
    cells: list[str] = []
    problems: list[Finding] = []
    left = MAX_BYTES
    for number, text in enumerate(notebook.read(path, MAX_NOTEBOOK_BYTES), 1):
        left -= len(text)
        if left < 0:
            raise ValueError(_TOO_LARGE)
        try:
            skipped: list[str] = []
            cells.append(notebook.python_of(with_line_feeds(text), skipped.append))
            problems += [Finding('W202', Place(path, 1, 1, 1, 1, number), line, line,
                                 'this Python is not followed, so nobody can check it', 'unknown')
                         for line in skipped if _RUNS_PYTHON.match(line)]
        except (ValueError, RecursionError, MemoryError, OverflowError, SystemError) as error:
            cells.append('')
            problems.append(unreadable(path, str(error) or type(error).__name__, number))
    return Source(path, cells, True, problems)


def _walk(root: str, problems: list[Finding]) -> Iterator[tuple[str, str]]:
    """Yields paths below a folder, sorted, with the reason why each is left out, or `''`."""
    for folder, folders, names in os.walk(root, onerror=lambda error: problems.append(
            unreadable(error.filename, error.strerror or type(error).__name__))):
        for name in sorted((*folders, *names)):
            path = os.path.normpath(os.path.join(folder, name))
            is_source = name.endswith(('.py', '.ipynb'))
            if (is_source or name in folders) and os.path.islink(path):
                yield path, 'a link'
            elif name in folders:
                reason = _reason_against(path, name)
                if reason:
                    folders.remove(name)
                    yield path, reason
            elif is_source:
                yield path, ''
        folders.sort()


def _reason_against(path: str, name: str) -> str:
    """Returns why a folder below a root is not scanned, or `''`."""
    if name.startswith('.'):
        return 'a hidden folder'
    if name.endswith(('.egg-info', '.dist-info')):
        return 'data of a package'
    if any(os.path.lexists(os.path.join(path, one)) for one in _OF_ENVIRONMENTS):
        return 'a Python environment'
    return _LEFT_OUT.get(name, '')
