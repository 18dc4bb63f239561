"""Reads the values of arguments, as far as the source of one file shows them without doubt."""

from __future__ import annotations

import ast
import collections
import enum
import functools
import operator
from collections.abc import Callable, Iterator
from typing import NamedTuple, Union

from .nodes import Nodes


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

    def __init__(self, nodes: Nodes):
        """Takes the nodes of the file."""
        self._nodes = nodes

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

    def renamed(self) -> set[str]:
        """Returns the names that are other names: by `import x as y`, by `y = x.z`."""
        found = {each.asname for each in self._nodes.of(ast.alias) if each.asname}
        for node in self._nodes.of(ast.Assign):
            if isinstance(node.value, (ast.Name, ast.Attribute)):
                found.update(each.id for each in node.targets if isinstance(each, ast.Name))
        return found

    @functools.cached_property
    def _assigned_once(self) -> dict[str, ast.expr]:
        nodes, found = self._nodes, dict[str, ast.expr]()
        stores = collections.Counter(each.id for each in nodes.of(ast.Name)
                                     if not isinstance(each.ctx, ast.Load))
        for node in nodes.of(ast.Assign):
            found.update({each.id: node.value for each in node.targets
                          if isinstance(each, ast.Name)})
        for each in nodes.of(ast.AnnAssign):
            if isinstance(each.target, ast.Name) and each.value is not None:
                found[each.target.id] = each.value
        others = set(_bound_otherwise(nodes))
        return {name: value for name, value in found.items()
                if stores[name] == 1 and name not in others}


def _bound_otherwise(nodes: Nodes) -> Iterator[str]:
    """Yields the names that something other than an assignment may bind."""
    yield from (each.arg for each in nodes.of(ast.arg))  # Its value comes from callers.
    for alias in nodes.of(ast.alias):
        yield (alias.asname or alias.name).partition('.')[0]
    for definitions in (nodes.of(ast.FunctionDef), nodes.of(ast.AsyncFunctionDef),
                        nodes.of(ast.ClassDef)):
        yield from (each.name for each in definitions)
    for statements in (nodes.of(ast.Global), nodes.of(ast.Nonlocal)):
        for each in statements:
            yield from each.names
    for bound in (nodes.of(ast.ExceptHandler), nodes.of(ast.MatchAs), nodes.of(ast.MatchStar)):
        yield from (each.name for each in bound if each.name)
    yield from (each.rest for each in nodes.of(ast.MatchMapping) if each.rest)
