"""Holds the nodes of a syntax tree by their types, and reads the simplest of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar('T', bound=ast.AST)

_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Name: (), ast.Constant: (), ast.alias: (), ast.Import: ('names',),
    ast.ImportFrom: ('names',), ast.Attribute: ('value',), ast.keyword: ('value',),
    ast.BinOp: ('left', 'right'), ast.BoolOp: ('values',), ast.UnaryOp: ('operand',),
    ast.Compare: ('left', 'comparators'), ast.Subscript: ('value', 'slice'),
    ast.Tuple: ('elts',), ast.List: ('elts',), ast.Starred: ('value',)}
"""The fields with nodes of frequent types, without `ctx` and operators, which nobody asks for."""
_MOST_WRITTEN = 80


class Nodes:
    """All nodes of a tree. No depth of nesting is too much."""

    def __init__(self, tree: ast.AST):
        """Visits the tree once."""
        self.parents: dict[ast.AST, ast.AST] = {}
        self._by_type: dict[type[ast.AST], list[ast.AST]] = {}
        todo = [tree]
        for node in todo:  # It grows.
            kind = type(node)
            self._by_type.setdefault(kind, []).append(node)
            for name in _FIELDS.get(kind, node._fields):
                value = getattr(node, name, None)
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, ast.AST):
                        self.parents[child] = node
                        todo.append(child)

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


def called_name(call: ast.Call) -> str:
    """Returns the last part of what a call calls, such as `'minimize'`; `''` for no name."""
    return last_name(call.func)


def last_name(node: ast.expr | None) -> str:
    """Returns the last part of a name, or of what is called; `''` for other expressions."""
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
