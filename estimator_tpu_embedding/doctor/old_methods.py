"""Finds methods of dicts that Python 3 lacks, where the object is a dict without doubt."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from .facts import Fact, Place
from .nodes import Nodes, called_name
from .values import Values

TODAY = {  # the expression for today, of a dict `d`
    'has_key': 'key in {}', 'iteritems': '{}.items()', 'iterkeys': '{}.keys()',
    'itervalues': '{}.values()', 'viewitems': '{}.items()', 'viewkeys': '{}.keys()',
    'viewvalues': '{}.values()'}
_MAKERS = frozenset({'dict', 'OrderedDict', 'defaultdict'})

_VERSION = re.compile(r'PY2|PY3|version|hasattr|getattr|signature', re.IGNORECASE)
_CAUGHT = re.compile(r'\b(AttributeError|TypeError|Exception|StandardError)\b')


def facts_of(nodes: Nodes, values: Values, place_of: Callable[[ast.AST], Place]
             ) -> Iterator[Fact]:
    """Yields a fact `'old method'` per use of such a method of a dict.

    What a condition or a `try` guards is left out: it may be for Python 2 only.
    """
    for node in nodes.of(ast.Attribute):
        if node.attr not in TODAY or not isinstance(node.ctx, ast.Load):
            continue
        held = node.value
        name = held.id if isinstance(held, ast.Name) else 'd'
        if isinstance(held, ast.Name):
            held = values.assigned(held.id) or held
        if _is_dict(held) and not guards_around(node, nodes):
            yield Fact('old method', place_of(node), {
                'name': node.attr, 'written': f'{name}.{node.attr}'})


def guards_around(node: ast.AST, nodes: Nodes) -> bool:
    """Whether a test of the version, or a `try`, may keep Python from a node."""
    return any(map(_is_guard, nodes.above(node)))


def _is_guard(node: ast.AST) -> bool:
    """Whether a statement tests the version, or goes on where a method is missing."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _VERSION.search(ast.unparse(node.test)) is not None
    return isinstance(node, ast.Try) and any(
        each.type is None or _CAUGHT.search(ast.unparse(each.type)) for each in node.handlers)


def _is_dict(node: ast.expr) -> bool:
    return isinstance(node, (ast.Dict, ast.DictComp)) or (
        isinstance(node, ast.Call) and called_name(node) in _MAKERS)
