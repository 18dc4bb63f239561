"""Parses the text of a file, and reads its nodes and their places."""

from __future__ import annotations

import ast
import bisect
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ..errors import shown
from .findings import Finding, Place
from .sources import Source

_EMPTY = ast.Module(body=[], type_ignores=[])
T = TypeVar('T', bound=ast.AST)

FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Name: (), ast.Constant: (), ast.alias: (), ast.Import: ('names',),
    ast.ImportFrom: ('names',), ast.Attribute: ('value',), ast.keyword: ('value',),
    ast.BinOp: ('left', 'right'), ast.BoolOp: ('values',), ast.UnaryOp: ('operand',),
    ast.Compare: ('left', 'comparators'), ast.Subscript: ('value', 'slice'),
    ast.Tuple: ('elts',), ast.List: ('elts',), ast.Starred: ('value',)}
"""The fields with nodes of frequent types, without `ctx` and operators, which nobody asks for."""
_MOST_WRITTEN = 80
VERSIONS = frozenset({
    '__version__', 'VERSION', 'GIT_VERSION', 'version_info', 'hexversion', 'PY2', 'PY3', 'PY34',
    'LooseVersion', 'StrictVersion', 'parse_version', 'find_spec', 'find_loader'})
"""Words of a test that asks for a version, or whether a module is there."""
_HINTS = VERSIONS | {'dir', 'hasattr', 'version'}


class Parsed(NamedTuple):
    """A file after parsing."""

    tree: ast.Module  # Lines count through all cells of a notebook.
    places: Places
    problems: Sequence[Finding]  # E131 or E133, one per file or cell.


class Places:
    """Where the nodes of one file are written."""

    def __init__(self, source: Source):
        self.path = source.path
        self._is_notebook = source.is_notebook
        self._lines: list[str] = []
        self.starts: list[int] = []  # The number of lines before each cell.
        for cell in source.cells:
            self.starts.append(len(self._lines))
            self._lines += cell.split('\n')

    def of(self, node: ast.AST) -> Place:
        """Returns the place of a node that has a line."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line = getattr(node, 'end_lineno', None) or line
        end_column = getattr(node, 'end_col_offset', None) or 0
        before, cell = self._before(line)
        return Place(self.path, line - before, self._column(line, column), end_line - before,
                     self._column(end_line, end_column), cell)

    def at(self, line: int, column: int = 1) -> Place:
        """Returns the place of one character; `line` counts through all cells."""
        before, cell = self._before(line)
        return Place(self.path, line - before, column, line - before, column + 1, cell)

    def _before(self, line: int) -> tuple[int, int]:
        if not self._is_notebook:
            return 0, 0
        cell = max(1, bisect.bisect_left(self.starts, line))
        return self.starts[cell - 1], cell

    def _column(self, line: int, offset: int) -> int:
        """Returns the column, from 1, of an offset in bytes of UTF-8."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ''
        if text.isascii():
            return offset + 1
        return len(text.encode('utf-8', 'replace')[:offset].decode('utf-8', 'ignore')) + 1


def parse(source: Source, *, is_compiled: bool = True) -> Parsed:
    """Parses all cells of a file; one that does not parse has no statements.

    If `is_compiled`, what only the compiler finds is sought too, as `return` outside of a function.
    """
    places = Places(source)
    statements: list[ast.stmt] = []
    problems: list[Finding] = []
    for text, start in zip(source.cells, places.starts):
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
    """Returns the tree of one cell, and what is wrong with it."""
    tree = _EMPTY
    try:
        with warnings.catch_warnings(action='ignore'):  # Python warns of escapes in texts.
            tree = ast.parse(text)
            if is_compiled:
                compile(text, 'text', 'exec', dont_inherit=True)
    except (SyntaxError, ValueError) as error:  # The latter for half of a surrogate pair.
        column = 1
        if isinstance(error, SyntaxError) and error.lineno:
            line, column = min(error.lineno, text.count('\n') + 1), error.offset or 1
        else:  # A null byte has no line.
            line = text[:max(text.find('\x00'), 0)].count('\n') + 1
        why = shown(str(error.msg if isinstance(error, SyntaxError) else error))
        place = places.at(start + line, max(column, 1))
        return tree, Finding(
            'E131', place, 'syntax', '', f'this line is no Python 3: {why}; all names of the '
            f'{"cell" if place.cell else "file"} are unknown', 'unknown')
    except (RecursionError, MemoryError, OverflowError, SystemError) as error:
        return tree, too_deep(places.at(start + 1), error)
    return tree, None


def too_deep(place: Place, error: BaseException) -> Finding:
    """Returns the finding E133 about a file."""
    why = shown(f'{type(error).__name__} {error}'.strip())
    return Finding('E133', place, 'nesting', '', f'it is nested too deeply to examine ({why}); its '
                   'names are unknown', 'unknown')


class Nodes:
    """All nodes of a tree. No depth of nesting is too much."""

    def __init__(self, tree: ast.AST):
        self.parents: dict[ast.AST, ast.AST] = {}
        self.hints: set[ast.AST] = set()  # Words that ask for versions or names, and all around.
        self._by_type: dict[type[ast.AST], list[ast.AST]] = {}
        todo = [tree]
        for node in todo:  # It grows.
            kind = type(node)
            self._by_type.setdefault(kind, []).append(node)
            for name in FIELDS.get(kind, node._fields):
                value = getattr(node, name, None)
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, ast.AST):
                        self.parents[child] = node
                        todo.append(child)
            if getattr(node, 'id' if kind is ast.Name else 'attr', None) in _HINTS:
                hint: ast.AST | None = node
                while hint is not None and hint not in self.hints:
                    self.hints.add(hint)
                    hint = self.parents.get(hint)

    def of(self, kind: type[T]) -> list[T]:
        """Returns the nodes of a type, those near the module first."""
        found: Any = self._by_type.get(kind, [])
        return list(found)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yields the nodes around a node, from the inside to the module."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)


def last_name(node: ast.expr | None) -> str:
    """Returns the last part of a name, or of what is called, as `'minimize'`; `''` for others."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ''


def chain_of(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """Returns the base of a chain of attributes, and their names."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.reverse()
    return node, names


def text_of(node: ast.expr | None) -> str | None:
    """Returns a constant text, or `None`."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def written(node: ast.expr) -> str:
    """Returns the source of a node, without what is too long."""
    if isinstance(node, ast.Call) and len(ast.dump(node)) > 1000:
        return f'{written(node.func)}(...)'
    base, names = chain_of(node)  # Most are chains, and `unparse` is slow.
    text = '.'.join((base.id, *names)) if isinstance(base, ast.Name) else ast.unparse(node)
    return text if len(text) <= _MOST_WRITTEN else f'{text[:_MOST_WRITTEN - 3]}...'
