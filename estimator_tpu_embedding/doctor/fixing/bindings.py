"""What the names of one module are bound to, as far as a rewritten file may rely on it."""

from __future__ import annotations

import ast
import collections
import sys
from collections.abc import Iterator
from typing import NamedTuple

BUILTINS = 'builtins.'
"""Before the name of a thing that needs no import."""


class Import(NamedTuple):
    """An import at the top level of a module, outside of any condition.

    Attributes:
      name: that it binds.
      path: what the name then stands for, such as `'numpy'`.
      module: that is loaded, such as `'os.path'` of `import os.path`, which binds `os`.
      line: of the statement.
    """

    name: str
    path: str
    module: str
    line: int


class Bindings:
    """The names that a module binds anywhere, and the imports that a rewritten file can use."""

    def __init__(self, tree: ast.Module):
        """Examines the tree of a whole file."""
        self.numbers = collections.Counter(_bound(tree))
        self.has_star = any(
            isinstance(node, ast.ImportFrom) and node.names[0].name == '*'
            for node in ast.walk(tree))
        self.imports = list(_imports(tree))

    def is_free(self, name: str) -> bool:
        """Whether a name of Python still means the same: nothing in the file binds it."""
        return not self.numbers[name] and not self.has_star

    def value(self, name: str, line: int) -> str | None:
        """What a name stands for at a line and in all functions; `None` if it may vary."""
        own = [one for one in self.imports if one.name == name]
        if (not own or len(own) != self.numbers[name] or self.has_star
                or len({one.path for one in own}) > 1 or min(one.line for one in own) > line):
            return None
        return own[0].path

    def loads(self, module: str, line: int) -> bool:
        """Whether an import loads a module before a line."""
        return any(f'{one.module}.'.startswith(f'{module}.') and one.line <= line
                   for one in self.imports)


def in_standard_library(path: str) -> bool:
    """Whether the first part of a dotted name is a module of Python."""
    return path.partition('.')[0] in sys.stdlib_module_names


def _imports(tree: ast.Module) -> Iterator[Import]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition('.')[0]
                yield Import(alias.asname or top, alias.name if alias.asname else top, alias.name,
                             node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield Import(alias.asname or alias.name, f'{node.module}.{alias.name}',
                             node.module, node.lineno)


def _bound(tree: ast.Module) -> Iterator[str]:
    """Every name that a statement or expression binds, once per place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition('.')[0]
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.MatchAs,
                               ast.MatchStar, ast.ExceptHandler)) and node.name:
            yield node.name
