"""Counts the modules of libraries that leave the ways on which the scan follows names.

A module that is passed on, returned or kept may be asked for a name where nobody sees it. The scan
follows `tf.train.Saver`, imports, aliases such as `t = tf`, and defaults of arguments. A name in
any other place is noted, also a module of the project that has modules of libraries. Which of all
these are modules is asked of the libraries.
"""

from __future__ import annotations

import ast

from . import by_text
from .calls import SPECIAL, is_of_library, written
from .lookups import meaning_of, path_of, text_of
from .meanings import Meanings
from .nodes import called_name
from .state import NEVER, State

ESCAPES = 'escapes here: what is asked of it there was not checked'

_ASKS_NOTHING = (  # Around a module that is only compared, tested or printed, or that is none.
    ast.AsyncFor, ast.AsyncFunctionDef, ast.ClassDef, ast.Compare, ast.Delete, ast.Expr, ast.For,
    ast.FormattedValue, ast.FunctionDef, ast.MatchClass, ast.MatchValue, ast.UnaryOp, ast.arg,
    ast.arguments, ast.comprehension)  # A default is followed.
_LOOK_UP = frozenset({
    'builtins.delattr', 'builtins.getattr', 'builtins.setattr', 'mock.patch.object',
    'unittest.mock.patch.object'})
_INNER = frozenset({
    '__delattr__', '__dict__', '__getattr__', '__getattribute__', '__loader__', '__setattr__',
    '__spec__'})
"""Attributes of a module that lead to its names by texts."""


def note(state: State, node: ast.expr, meanings: Meanings, names: str = '') -> None:
    """Notes names of libraries that stand where the scan does not follow them.

    Args:
      state: of the file.
      node: the whole chain of names, or a call that gives a module.
      meanings: of the base of the chain.
      names: that are looked up in the base, dotted.
    """
    if NEVER in state.condition.caught or node not in state.parents:
        return
    parts = names.split('.')
    inner = next((place for place, name in enumerate(parts) if name in _INNER), len(parts))
    names = '.'.join(parts[:inner])
    by_text.note(state, node, meanings, names)
    if inner < len(parts) or not _is_followed(state, node):
        state.note_modules(node, written(node), state.final(meanings, names), ESCAPES)


def _is_followed(state: State, node: ast.expr) -> bool:
    """Whether a module is followed at its place, or nothing is asked of it there."""
    child: ast.AST = node
    parent = state.parents[node]
    while isinstance(parent, ast.BoolOp):
        child, parent = parent, state.parents[parent]
    if child is getattr(parent, 'test', None) or isinstance(parent, _ASKS_NOTHING):
        return True
    if isinstance(parent, ast.BinOp):  # A text with the name of the module.
        return isinstance(parent.left, ast.Constant)
    if child is not node:
        return False
    if isinstance(parent, ast.Call) and parent.func is not node:
        return _is_harmless_argument(state, parent, node)
    if isinstance(parent, (ast.Attribute, ast.Call, ast.Subscript)):
        return node is getattr(parent, 'func', getattr(parent, 'value', None))
    if isinstance(parent, ast.IfExp):
        parent = state.parents[parent]
    targets = parent.targets if isinstance(parent, ast.Assign) else (
        [parent.target] if isinstance(parent, ast.AnnAssign) else [])
    return bool(targets) and all(
        isinstance(one, ast.Name) and state.is_followed(one.id) for one in targets)


def _is_harmless_argument(state: State, call: ast.Call, node: ast.expr) -> bool:
    """Whether a function that gets a module asks it for no name, or for one that is checked."""
    last = called_name(call)
    path = path_of(state, call.func) if last in by_text.HARMLESS or last in SPECIAL else ''
    if path == f'builtins.{last}' and last in by_text.HARMLESS:
        return True
    if path not in _LOOK_UP or not path.endswith(f'.{last}') or node is not call.args[0]:
        return False
    name = text_of(call.args[1]) if len(call.args) > 1 else None
    return (name or '').isidentifier() or (  # Otherwise it is W202.
        last == 'getattr' and is_of_library(state, meaning_of(state, node)))
