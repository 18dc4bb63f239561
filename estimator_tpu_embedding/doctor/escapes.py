"""Counts the modules of libraries that leave the ways on which the scan follows names.

A module that is passed on, returned or kept may be asked for a name where nobody sees it. The scan
follows `tf.train.Saver`, imports, aliases such as `t = tf`, and defaults of arguments. A name in
any other place is noted. Which of these are modules is asked of the libraries.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from . import by_text
from .calls import SPECIAL, is_of_library, written
from .facts import Use
from .lookups import chain_of, meaning_of, path_of, text_of
from .meanings import Meanings, is_examined
from .nodes import called_name
from .state import NEVER, State

ESCAPES = 'escapes here: what is asked of it there was not checked'
IS_KEPT = 'is kept here under a name that other code looks up: what that asks was not checked'

_FOLLOWED, _AS = '', '.'  # The latter is before the name under which a module is kept.
_WRAPPERS = (ast.BoolOp, ast.IfExp, ast.NamedExpr)
_ASKS_NOTHING = (  # Around a module that is only compared, tested or printed, or that is none.
    ast.AsyncFor, ast.AsyncFunctionDef, ast.ClassDef, ast.Compare, ast.Delete, ast.Expr, ast.For,
    ast.FormattedValue, ast.FunctionDef, ast.MatchClass, ast.MatchValue, ast.UnaryOp, ast.arg,
    ast.comprehension)
_LOOK_UP = frozenset({
    'builtins.delattr', 'builtins.getattr', 'builtins.setattr', 'builtins.vars',
    'mock.patch.object', 'unittest.mock.patch.object'})
_INNER = ('__delattr__', '__dict__', '__getattr__', '__getattribute__', '__setattr__')
"""Attributes of a module that lead to its names by texts."""


def note(state: State, node: ast.expr, meanings: Meanings, names: str = '') -> None:
    """Notes names of libraries that stand where the scan does not follow them.

    Args:
      state: of the file.
      node: the whole chain of names, or a call or an item that gives a module.
      meanings: of the base of the chain.
      names: that are looked up in the base, dotted.
    """
    if NEVER in state.condition.caught or node not in state.parents:
        return
    owner, _, last = names.rpartition('.')
    names, way = (owner, ESCAPES) if last in _INNER else (names, _way(state, node))
    by_text.note(state, node, meanings, names)
    parent = state.parents[node]
    if isinstance(parent, ast.Subscript) and text_of(parent.slice) is not None:
        note(state, parent, meaning_of(state, parent))  # An item of `sys.modules`.
    if way == _FOLLOWED or last == '__dict__' and is_of_library(state, meanings):  # That is W202.
        return
    for one in state.final(meanings, names):
        if one.question is not None and is_examined(one.question.module):
            condition = state.condition.also(one.condition)
            use = Use(state.places.of(node), one.question, written(node),
                      only_if=condition.only_if, unless=condition.unless)
            if way.startswith(_AS):
                state.kept[use] = way.removeprefix(_AS)
            else:
                state.escapes[use] = way


def _way(state: State, node: ast.expr) -> str:
    """Returns what becomes of a module at its place."""
    child: ast.AST = node
    parent, choices = state.parents[node], 0
    while child is not getattr(parent, 'test', None) and isinstance(parent, _WRAPPERS):
        choices += isinstance(parent, ast.IfExp)
        if isinstance(parent, ast.NamedExpr) and (choices or state.scope.is_class):
            return ESCAPES
        child, parent = parent, state.parents[parent]
    if child is getattr(parent, 'test', None) or isinstance(parent, _ASKS_NOTHING):
        return _FOLLOWED
    if isinstance(parent, ast.BinOp):  # A text with the name of the module.
        return _FOLLOWED if isinstance(parent.left, ast.Constant) else ESCAPES
    if isinstance(parent, ast.Call) and child is node is not parent.func:
        return _as_argument(state, parent, node)
    if isinstance(parent, (ast.Attribute, ast.Call, ast.Subscript)):
        is_asked = child is getattr(parent, 'func', getattr(parent, 'value', None))
        return _FOLLOWED if child is node and is_asked else ESCAPES
    if isinstance(parent, ast.arguments):
        base, _ = chain_of(node)  # In functions, names of the class are not known any more.
        is_own = state.scope.is_class and getattr(base, 'id', '') in state.scope.names
        return ESCAPES if choices or is_own else _FOLLOWED
    if choices <= isinstance(child, ast.IfExp):  # Of choices, the outermost is followed.
        targets: Sequence[ast.expr] = ()
        if isinstance(parent, ast.AnnAssign):
            targets = [parent.target]
        elif isinstance(parent, ast.Assign):
            targets = parent.targets
        elif isinstance(parent, (ast.List, ast.Tuple)):
            targets = _unpacked(state, parent, child)
        if targets:
            return _assigned(state, targets)
    return ESCAPES


def _unpacked(state: State, items: ast.List | ast.Tuple, child: ast.AST) -> list[ast.expr]:
    """Returns the names that get an item of a list which is unpacked at once, or nothing."""
    parent = state.parents[items]
    index = next(place for place, each in enumerate(items.elts) if each is child)
    found: list[ast.expr] = []
    for one in parent.targets if isinstance(parent, ast.Assign) else ():
        elts = getattr(one, 'elts', ())
        if len(elts) != len(items.elts) or not isinstance(elts[index], ast.Name) or any(
                isinstance(each, ast.Starred) for each in (*elts, *items.elts)):
            return []
        found.append(elts[index])
    return found


def _assigned(state: State, targets: Sequence[ast.expr]) -> str:
    """Returns what becomes of a module that is assigned to all of some targets."""
    first = targets[0]
    if len(targets) == 1 and isinstance(first, ast.Attribute) and all(
            one.owner is not None for one in meaning_of(state, first.value)):
        return f'{_AS}{first.attr}'
    names = {one.id for one in targets if isinstance(one, ast.Name)}
    if len(names) < len(targets) or not names.isdisjoint(state.nonlocals):
        return ESCAPES
    is_kept = state.scope.is_class or not names.isdisjoint(state.scope.outer_names)
    return (f'{_AS}{names.pop()}' if len(names) == 1 else ESCAPES) if is_kept else _FOLLOWED


def _as_argument(state: State, call: ast.Call, node: ast.expr) -> str:
    """Returns what becomes of a module that a function gets."""
    last = called_name(call)
    path = path_of(state, call.func) if last in by_text.HARMLESS or last in SPECIAL else ''
    if path == f'builtins.{last}' and last in by_text.HARMLESS:
        return _FOLLOWED
    if path not in _LOOK_UP or not path.endswith(f'.{last}') or node is not call.args[0]:
        return ESCAPES
    name = text_of(call.args[1]) if len(call.args) > 1 else None
    # With a third argument `getattr` does not fail; what nobody can check is listed as W202.
    is_known = last != 'vars' and (name or '').isidentifier() or (
        last == 'getattr' and len(call.args) > 2) or (
        last in ('getattr', 'vars') and is_of_library(state, meaning_of(state, node)))
    return _FOLLOWED if is_known else ESCAPES
