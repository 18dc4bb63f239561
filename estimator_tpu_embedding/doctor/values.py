"""Reads the values of arguments, as far as the source of one file shows them without doubt."""

from __future__ import annotations

import ast
import collections
import enum
import functools
import operator
from collections.abc import Callable
from typing import NamedTuple, Union


class Flag(NamedTuple):
    """The value of a command-line flag, such as `FLAGS.use_tpu`.

    Attributes:
      name: of the flag.
      written: as the source has it.
    """

    name: str
    written: str


class Unread(enum.Enum):
    """A value that the source does not show."""

    VALUE = 'unread'


UNREAD = Unread.VALUE
Value = Union[bool, int, float, str, None, Flag, Unread]

_FLAGS = frozenset('FLAGS flags args arguments opt opts options parsed parsed_args'.split())
"""What scripts call the object with the values of their flags."""

_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_MOST = 2**63


class Values:
    """Reads values in one file: literals, flags, and names that are assigned once."""

    def __init__(self, tree: ast.Module):
        """Takes the tree of the file."""
        self._tree = tree

    def of(self, node: ast.expr, depth: int = 4) -> Value:
        """Returns the value of an expression.

        Args:
          node: the expression.
          depth: how many names and operators may be followed.
        """
        if isinstance(node, ast.Constant):
            return (node.value if node.value is None
                    or isinstance(node.value, (bool, int, float, str)) else UNREAD)
        if depth == 0:
            return UNREAD
        if isinstance(node, ast.Attribute):
            base = node.value
            return (Flag(node.attr, f'{base.id}.{node.attr}')
                    if isinstance(base, ast.Name) and base.id in _FLAGS else UNREAD)
        if isinstance(node, ast.Name):
            found = self.assigned(node.id)
            return UNREAD if found is None else self.of(found, depth - 1)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            one, other = self.of(node.left, depth - 1), self.of(node.right, depth - 1)
            if type(one) is int and type(other) is int and abs(one) < _MOST > abs(other):
                return _ARITHMETIC[type(node.op)](one, other)
        return UNREAD

    def assigned(self, name: str) -> ast.expr | None:
        """Returns the expression that a name stands for, if the file gives it one value only."""
        return self._assigned_once.get(name)

    @functools.cached_property
    def _assigned_once(self) -> dict[str, ast.expr]:
        stores: collections.Counter[str] = collections.Counter()
        found: dict[str, ast.expr] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                stores[node.id] += 1
            elif isinstance(node, ast.arg):
                stores[node.arg] += 2  # Its value comes from callers.
            elif isinstance(node, ast.alias):
                stores[(node.asname or node.name).partition('.')[0]] += 2
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                stores[node.name] += 2
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                stores.update({name: 2 for name in node.names})
            elif isinstance(node, ast.ExceptHandler) and node.name:
                stores[node.name] += 2
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                stores[node.name] += 2
            elif isinstance(node, ast.MatchMapping) and node.rest:
                stores[node.rest] += 2
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found[target.id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if node.value is not None:
                    found[node.target.id] = node.value
        return {name: value for name, value in found.items() if stores[name] == 1}
