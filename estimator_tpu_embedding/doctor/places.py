"""Parses the text of a file as far as it can be parsed, and says where its nodes are written."""

from __future__ import annotations

import ast
import bisect
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import shown
from .facts import Finding, Place
from .sources import Source

_MOST_TRIED = 12
"""The most ends that are tried for the part of a file before a line that does not parse."""
_GOES_ON = ('else', 'elif', 'except', 'finally', ')', ']', '}', '#', ' ', '\t', '"', "'")
_PYTHON_2 = (  # A part of Python's message, and what the line has.
    ("Missing parentheses in call to 'print'", 'the print statement of Python 2'),
    ("Missing parentheses in call to 'exec'", 'the exec statement of Python 2'),
    ('multiple exception types must be parenthesized', '"except A, e" of Python 2'),
    ('leading zeros in decimal integer', 'an octal number of Python 2'),
    ('inconsistent use of tabs', 'tabs mixed with spaces, as in Python 2'),
    ('import * only allowed at module level', '"import *" in a function, as in Python 2'),
    ('prior to global declaration', 'a late global statement, as in Python 2'),
    ('before global declaration', 'a late global statement, as in Python 2'))


class Parsed(NamedTuple):
    """A file after parsing.

    Attributes:
      tree: all statements that were parsed; lines count through all cells of a notebook.
      places: where its nodes are.
      problems: E131 or E133, one per file or cell.
    """

    tree: ast.Module
    places: Places
    problems: Sequence[Finding]


class Places:
    """Where the nodes of one file are written."""

    def __init__(self, source: Source):
        """Counts the lines of all cells."""
        self._path = source.path
        self._is_notebook = source.is_notebook
        self._lines: list[str] = []
        self._starts: list[int] = []  # The number of lines before each cell.
        for cell in source.cells:
            self._starts.append(len(self._lines))
            self._lines += cell.split('\n')

    def of(self, node: ast.AST) -> Place:
        """Returns the place of a node that has a line."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line = getattr(node, 'end_lineno', None) or line
        end_column = getattr(node, 'end_col_offset', None) or 0
        before, cell = self._before(line)
        return Place(self._path, line - before, self._column(line, column), end_line - before,
                     self._column(end_line, end_column), cell)

    def at(self, line: int, column: int = 1) -> Place:
        """Returns the place of one character; `line` counts through all cells."""
        before, cell = self._before(line)
        return Place(self._path, line - before, column, line - before, column + 1, cell)

    def start(self, cell: int) -> int:
        """Returns the number of lines before a cell, which counts from 0."""
        return self._starts[cell]

    @property
    def lines(self) -> int:
        """The number of lines."""
        ends = (*self._starts[1:], len(self._lines))
        return len(self._lines) - sum(not self._lines[end - 1] for end in ends if end)

    def _before(self, line: int) -> tuple[int, int]:
        if not self._is_notebook:
            return 0, 0
        cell = max(1, bisect.bisect_left(self._starts, line))
        return self._starts[cell - 1], cell

    def _column(self, line: int, offset: int) -> int:
        """Returns the column, from 1, of an offset in bytes of UTF-8."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ''
        if text.isascii():
            return offset + 1
        return len(text.encode('utf-8', 'replace')[:offset].decode('utf-8', 'ignore')) + 1


def parse(source: Source, *, is_compiled: bool = True) -> Parsed:
    """Parses all cells of a file; a cell that does not parse is parsed as far as it does.

    Args:
      source: of the file.
      is_compiled: whether it is also sought what only the compiler finds, such as `return` outside
        of a function.
    """
    places = Places(source)
    statements: list[ast.stmt] = []
    problems: list[Finding] = []
    for number, text in enumerate(source.cells):
        start = places.start(number)
        tree, problem = _tree_of(text, places, start, is_compiled)
        if problem is not None:
            problems.append(problem)
        if start:
            for statement in tree.body:
                ast.increment_lineno(statement, start)
        statements += tree.body
    return Parsed(ast.Module(body=statements, type_ignores=[]), places, problems)


def _tree_of(text: str, places: Places, start: int, is_compiled: bool
             ) -> tuple[ast.Module, Finding | None]:
    """Returns the tree of one cell, or of its beginning, and what was wrong with the rest."""
    try:
        with warnings.catch_warnings(action='ignore'):  # Python warns of escapes in texts.
            tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:  # The latter for half of a surrogate pair.
        column = 1
        if isinstance(error, SyntaxError) and error.lineno:
            line, column = min(error.lineno, text.count('\n') + 1), error.offset or 1
        else:  # A null byte has no line.
            line = text[:max(text.find('\x00'), 0)].count('\n') + 1
        return _beginning(text, line), _not_python(error, line, column, places, start)
    except (RecursionError, MemoryError, OverflowError, SystemError) as error:
        return ast.Module(body=[], type_ignores=[]), too_deep(places.at(start + 1), error)
    try:
        if is_compiled:
            with warnings.catch_warnings(action='ignore'):
                compile(text, 'text', 'exec', dont_inherit=True)
    except SyntaxError as error:  # Of those that only the compiler finds.
        line = error.lineno or 1
        return tree, _not_python(error, line, error.offset or 1, places, start)
    except (ValueError, RecursionError, MemoryError, OverflowError, SystemError) as error:
        return tree, too_deep(places.at(start + 1), error)
    return tree, None


def too_deep(place: Place, error: BaseException) -> Finding:
    """Returns the finding E133 about a file."""
    why = shown(f'{type(error).__name__} {error}'.strip())
    return Finding('E133', place, 'nesting', '', f'it is nested too deeply to examine ({why}); its '
                   'names are unknown', 'unknown')


def _not_python(error: Exception, line: int, column: int, places: Places, start: int) -> Finding:
    """Returns the finding E131 about a line of a cell."""
    text = str(error.msg if isinstance(error, SyntaxError) else error)
    what = next((what for part, what in _PYTHON_2 if part in text), shown(text))
    place = places.at(start + line, max(column, 1))
    return Finding('E131', place, 'syntax', '', f'this line is no Python 3: {what}; the rest of '
                   f'the {"cell" if place.cell else "file"} is unknown', 'unknown')


def _beginning(text: str, line: int) -> ast.Module:
    """Returns the tree of the statements at the top level that end before a line."""
    lines = text.split('\n')[:line]
    tried = 0
    for end in range(len(lines) - 1, -1, -1):
        if not lines[end] or lines[end].startswith(_GOES_ON):
            continue
        tried += 1
        if tried > _MOST_TRIED:
            break
        try:
            return ast.parse('\n'.join(lines[:end]))
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError):
            continue
    return ast.Module(body=[], type_ignores=[])
