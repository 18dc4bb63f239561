"""Rewrites names that have one exact successor, and nothing else, by means of LibCST.

LibCST says where a name begins and ends, and how a changed import is written. The text around it
is copied, so comments, line ends and tabs stay as they are. `rewriting` scans the new text before
it is written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import libcst

from ..errors import quoted
from .facts import Finding, Place
from .fixing.bindings import BUILTINS, Bindings, in_standard_library
from .fixing.edits import Edit, Imported, Text
from .fixing.imports import changed

_MOST_DEPTH = 500


class Fixed(NamedTuple):
    """The result.

    Attributes:
      text: the new text.
      done: findings that are gone.
      left: the others, and why they were left.
    """

    text: str
    done: Sequence[Finding]
    left: Sequence[tuple[Finding, str]]


def fixed(text: str, findings: Iterable[Finding]) -> Fixed:
    r"""Returns the text of a Python file with the successors of names.

    Args:
      text: of the whole file, which parses.
      findings: about this text; those without a successor are not in the result.

    Raises:
      libcst.ParserSyntaxError: if LibCST cannot read the text.
      RecursionError: if it is nested too deeply.

    >>> found = Finding('E121', Place('a.py', 2, 5, 2, 11), 'numpy.int', 'np.int', 'is gone',
    ...                 successor='builtins.int')
    >>> fixed('import numpy as np\nx = np.int(3)  # three\n', [found]).text
    'import numpy as np\nx = int(3)  # three\n'
    """
    rewriting = _Rewriting(text)
    for place, finding in sorted((one.place, one) for one in findings
                                 if one.successor and one.place):
        rewriting.add(place, finding)
    return rewriting.result()


class _Rewriting:
    """One text on its way to the new one."""

    def __init__(self, text: str):
        self._tree = ast.parse(text)
        if _depth(self._tree) > _MOST_DEPTH:  # LibCST would overflow the stack of the process.
            raise RecursionError
        self._bindings = Bindings(self._tree)
        self._text = Text(text)
        self._chains: list[tuple[Place, Finding]] = []
        self._imports: dict[int, list[tuple[Imported, Finding]]] = {}
        self._edits: list[Edit] = []
        self._values: dict[str, str] = {}  # of names whose imports are rewritten
        self._modules: set[str] = set()  # to be imported
        self._done: list[Finding] = []
        self._left: list[tuple[Finding, str]] = []

    def add(self, place: Place, finding: Finding) -> None:
        """Takes one finding."""
        imported = self._text.imports.get((place.line, place.column))
        if imported is None:
            self._chains.append((place, finding))
        else:
            self._imports.setdefault(id(imported.statement), []).append((imported, finding))

    def result(self) -> Fixed:
        """Fixes all: imports first, which may be all that their names need."""
        for entries in self._imports.values():
            try:
                self._fix_import(entries)
                self._done += [finding for _, finding in entries]
            except ValueError as reason:
                self._left += [(finding, str(reason)) for _, finding in entries]
        for place, finding in self._chains:
            try:
                self._fix_chain(place, finding)
                self._done.append(finding)
            except ValueError as reason:
                self._left.append((finding, str(reason)))
        if self._modules:
            self._edits.append(self._text.after(
                _last_import(self._tree), [f'import {one}' for one in sorted(self._modules)]))
        return Fixed(self._text.edited(self._edits), self._done, self._left)

    def _fix_import(self, entries: Sequence[tuple[Imported, Finding]]) -> None:
        statement, _, is_alone = entries[0][0]
        new = changed(statement, {imported.alias: finding.successor
                                  for imported, finding in entries})
        indent = self._text.indent_of(statement)
        if new.lines and (not is_alone or indent.strip()):
            raise ValueError('other code is on the line of the import')
        self._edits.append(self._text.piece(statement, _code(new.statement.with_changes(
            semicolon=libcst.MaybeSentinel.DEFAULT))))
        if new.lines:
            self._edits.append(self._text.below(statement, [indent + one for one in new.lines]))
        self._values |= new.bound

    def _fix_chain(self, place: Place, finding: Finding) -> None:
        node = self._text.chains.get((place.line, place.column, place.end_line, place.end_column))
        if node is None:
            raise ValueError('it is no plain use of a name')
        written = _code(node.with_changes(lpar=[], rpar=[]))
        if not re.fullmatch(r'\w+(\.\w+)*', written):
            raise ValueError('the name is not written in one piece')
        rest = _rest(written, finding.subject)
        if not self._is_right_already(written, finding.successor + rest, place.line):
            self._edits.append(self._text.piece(
                node, self._reference(finding.successor, written, place.line) + rest))

    def _is_right_already(self, written: str, path: str, line: int) -> bool:
        """Whether the new import of its first name makes it right."""
        root, dot, names = written.partition('.')
        return (root in self._values and self._values[root] + dot + names == path
                and self._bindings.value(root, line) is not None)

    def _reference(self, path: str, written: str, line: int) -> str:
        """How a line of this file can write the whole path of a name, if possible as it did."""
        if path.startswith(BUILTINS):
            name = path.removeprefix(BUILTINS)
            if not self._bindings.is_free(name):
                raise ValueError(f'the file may give another meaning to {name}')
            return name
        first = written.partition('.')[0]
        for one in sorted(self._bindings.imports,
                          key=lambda one: (-len(one.path), one.name != first)):
            if (f'{path}.'.startswith(f'{one.path}.') and one.name not in self._values
                    and self._bindings.value(one.name, line) == one.path):
                self._load(path, one.path, line)
                return one.name + path[len(one.path):]
        root = path.partition('.')[0]
        if not self._bindings.is_free(root):
            raise ValueError(f'the file may give another meaning to {quoted([root])}')
        self._load(path, '', line)
        return path

    def _load(self, path: str, given: str, line: int) -> None:
        """Imports the module of a name, if what the file has `given` does not bring it."""
        if in_standard_library(path):
            module = path.rpartition('.')[0] or path
            if f'{given}.'.startswith(f'{module}.') or self._bindings.loads(module, line):
                return
            self._modules.add(module)
        elif not given:
            self._modules.add(path.partition('.')[0])


def _code(node: libcst.CSTNode) -> str:
    return libcst.Module([]).code_for_node(node)


def _depth(tree: ast.Module) -> int:
    depth = 0
    level: list[ast.AST] = [*tree.body]
    while level and depth <= _MOST_DEPTH:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


def _last_import(tree: ast.Module) -> int:
    """The last line of the imports that begin a file, or the line before its first statement."""
    last = None
    for number, node in enumerate(tree.body):
        is_docstring = not number and isinstance(node, ast.Expr) and isinstance(
            node.value, ast.Constant) and isinstance(node.value.value, str)
        if not is_docstring and not isinstance(node, (ast.Import, ast.ImportFrom)):
            break
        last = node.end_lineno
    if last is not None:
        return last
    first = tree.body[0]
    return min(one.lineno for one in (first, *getattr(first, 'decorator_list', ()))) - 1


def _rest(written: str, subject: str) -> str:
    """What follows the name at fault in a chain of names.

    >>> _rest('np.int.x', 'numpy.int'), _rest('np.int', 'numpy.int'), _rest('m.x', 'numpy.matrix')
    ('.x', '', '.x')
    """
    parts, last = written.split('.'), subject.rpartition('.')[2]
    end = max((number for number, part in enumerate(parts, 1) if part == last), default=1)
    return ''.join(f'.{part}' for part in parts[end:])
