"""Finds methods of dicts that Python 3 lacks, where the object is a dict without doubt."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .facts import Fact, Place
from .values import Values

TODAY = {  # the expression for today, of a dict `d`
    'has_key': 'key in {}', 'iteritems': '{}.items()', 'iterkeys': '{}.keys()',
    'itervalues': '{}.values()', 'viewitems': '{}.items()', 'viewkeys': '{}.keys()',
    'viewvalues': '{}.values()'}
_MAKERS = frozenset({'dict', 'OrderedDict', 'defaultdict'})


def facts_of(tree: ast.Module, nodes: list[ast.AST], place_of: Callable[[ast.AST], Place]
             ) -> Iterator[Fact]:
    """Yields a fact `'old method'` per use of such a method of a dict."""
    uses = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in TODAY
            and isinstance(node.ctx, ast.Load)]
    if not uses:
        return
    values = Values(tree)
    for node in uses:
        held = node.value
        name = held.id if isinstance(held, ast.Name) else 'd'
        if isinstance(held, ast.Name):
            held = values.assigned(held.id) or held
        if _is_dict(held):
            yield Fact('old method', place_of(node), {
                'name': node.attr, 'written': f'{name}.{node.attr}'})


def _is_dict(node: ast.expr) -> bool:
    return isinstance(node, (ast.Dict, ast.DictComp)) or (
        isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute))
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) in _MAKERS)
