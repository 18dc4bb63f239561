"""Finds the command-line flags of a script: of absl, `tf.flags` and argparse."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .facts import Fact, Place
from .nodes import Nodes, called_name
from .values import UNREAD

_REQUIRED = frozenset({'mark_flag_as_required', 'mark_flags_as_required'})


def facts_of(nodes: Nodes, place_of: Callable[[ast.AST], Place]) -> Iterator[Fact]:
    """Yields a fact `'flag'` per definition, and `'required'` for flags that are marked so.

    A flag has `name`, `option` as it is given on the command line, `default` (`UNREAD` if the
    source does not show it), `is_required`, and `library`: `'absl'` or `'argparse'`.
    """
    for node in nodes.of(ast.Call):
        called = called_name(node)
        if called.startswith('DEFINE_'):
            yield from _of_absl(node, place_of)
        elif called == 'add_argument':
            yield from _of_argparse(node, place_of)
        elif called == 'add_subparsers':
            yield Fact('subparsers', place_of(node), {})
        elif called in _REQUIRED and node.args:
            names = tuple(each.value for each in ast.walk(node.args[0])
                          if isinstance(each, ast.Constant) and isinstance(each.value, str))
            yield Fact('required', place_of(node), {'names': names})


def _of_absl(call: ast.Call, place_of: Callable[[ast.AST], Place]) -> Iterator[Fact]:
    by_name = {each.arg: each.value for each in call.keywords}
    name = _constant(call.args[0] if call.args else by_name.get('name'))
    if not isinstance(name, str):
        return
    default = call.args[1] if len(call.args) > 1 else by_name.get('default')
    yield Fact('flag', place_of(call), {
        'name': name, 'option': f'--{name}', 'library': 'absl', 'default': _constant(default),
        'is_required': _constant(by_name.get('required')) is True})


def _of_argparse(call: ast.Call, place_of: Callable[[ast.AST], Place]) -> Iterator[Fact]:
    options = [_constant(each) for each in call.args]
    if not options or not all(isinstance(each, str) and each for each in options):
        return
    texts = [str(each) for each in options]
    by_name = {each.arg: each.value for each in call.keywords}
    long = next((each for each in texts if each.startswith('--')), texts[0])
    is_option = long.startswith('-')
    action = _constant(by_name.get('action'))
    default = {'store_true': False, 'store_false': True}.get(str(action), None)
    if 'default' in by_name:
        default = _constant(by_name['default'])  # type: ignore[assignment]
    nargs = _constant(by_name.get('nargs'))
    name = _constant(by_name.get('dest'))
    yield Fact('flag', place_of(call), {
        'name': name if isinstance(name, str) else long.lstrip('-').replace('-', '_'),
        'option': long, 'library': 'argparse', 'default': default,
        'is_required': (_constant(by_name.get('required')) is True if is_option
                        else nargs not in ('?', '*') and 'default' not in by_name)})


def _constant(node: ast.expr | None) -> object:
    """Returns the value of a constant, of `None` too; `UNREAD` for other expressions."""
    if node is None:
        return None
    if (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)):
        return UNREAD
    return node.value if isinstance(node, ast.Constant) else UNREAD
