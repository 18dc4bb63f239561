"""Finds functions of learning rates that are made anew for each table, though they are alike.

Two tables share the tag of a rate only if they have the same function object.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from .nodes import Nodes, called_name

ARGUMENTS = {
    'embedding_column': 'learning_rate_fn', 'shared_embedding_columns': 'learning_rate_fn',
    'TableConfig': 'learning_rate_fn',
    **{f'embedding.{name}': 'learning_rate' for name in (
        'Adagrad', 'AdagradMomentum', 'Adam', 'FTRL', 'SGD')}}
"""The argument of each construct that may be a function of the step."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp,
          ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Made(NamedTuple):
    """A function that is made where it is given to a table.

    Attributes:
      key: equal for functions that compute the same.
      is_repeated: whether this place makes several of them.
      how: how it is made: `'a lambda'`, `'a functools.partial'`, `'make_rate()'`.
    """

    key: str
    is_repeated: bool
    how: str


def made_by(node: ast.expr, nodes: Nodes) -> Made | None:
    """Returns what an argument makes; `None` if it makes nothing or nobody can tell."""
    how = _how(node, nodes)
    if how is None:
        return None
    loop, function = _around(node, nodes)
    free = _names_in(node)
    if loop is None and isinstance(function, ast.FunctionDef):
        calls = [call for call in nodes.of(ast.Call)
                 if isinstance(call.func, ast.Name) and call.func.id == function.name]
        if len(calls) > 1 or any(_around(call, nodes)[0] is not None for call in calls):
            loop = function
    scope = function.lineno if isinstance(function, _FUNCTIONS) and free else 0
    return Made(f'{scope} {ast.dump(node)}', loop is not None and not free & _bound_in(loop), how)


def _how(node: ast.expr, nodes: Nodes) -> str | None:
    """Says how an expression makes a new function; `None` if it does not."""
    if isinstance(node, ast.Lambda):
        return 'a lambda'
    if not isinstance(node, ast.Call):
        return None
    name = called_name(node)
    if name == 'partial':
        return 'a functools.partial'
    found = [one for one in nodes.of(ast.FunctionDef) if one.name == name]
    is_local = isinstance(node.func, ast.Name) and len(found) == 1
    return f'{name}()' if is_local and _returns_new_function(found[0]) else None


def _around(node: ast.AST, nodes: Nodes) -> tuple[ast.AST | None, ast.AST | None]:
    """Returns the loop around a node within its function, if any, and that function."""
    loop: ast.AST | None = None
    below = node
    for above in nodes.above(node):
        if isinstance(above, _FUNCTIONS):
            return loop, above
        if loop is None and isinstance(above, _LOOPS) and below is not getattr(
                above, 'iter', None) and below not in getattr(above, 'orelse', ()):
            loop = above  # These parts are computed once.
        below = above
    return loop, None


def _bound_in(node: ast.AST) -> set[str]:
    """Returns the names that a loop or function binds, and that may differ each time."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, ast.arg):
            found.add(each.arg)
        elif isinstance(each, ast.FunctionDef) and each is not node:
            found.add(each.name)
    return found


def _returns_new_function(function: ast.FunctionDef) -> bool:
    """Whether a function returns a function that it defines, and nothing remembers results."""
    last = function.body[-1]
    if function.decorator_list or not isinstance(last, ast.Return):
        return False
    return isinstance(last.value, ast.Lambda) or isinstance(last.value, ast.Name) and any(
        isinstance(node, ast.FunctionDef) and node.name == last.value.id for node in function.body)


def _names_in(node: ast.expr) -> set[str]:
    """Returns the names whose values decide what an expression makes."""
    if not isinstance(node, ast.Lambda):
        return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    return (_names_in(node.body) - own).union(*map(_names_in, defaults))
