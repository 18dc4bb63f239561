"""Follows `try` statements: what their handlers catch, and when a handler runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .expressions import walk
from .facts import Question
from .guards import DEAD
from .meanings import ALL, ALWAYS, ATTRIBUTE, IMPORT, NAME, OTHERS, Condition, joined
from .meanings import Names as Bound
from .state import State

LEAVES, FAILS = 'leaves', 'fails'
"""How a block of statements ends that does not reach what follows: by `return` or `continue`, which
the program survives, or by an error or exit, which it does not.
"""
_CAUGHT = {
    'ImportError': {IMPORT}, 'ModuleNotFoundError': {IMPORT}, 'AttributeError': {ATTRIBUTE},
    'NameError': {NAME}, 'Exception': ALL, 'BaseException': ALL, 'StandardError': ALL}
_CATCHING_CALLS = frozenset({'suppress', 'assertRaises', 'assertRaisesRegex', 'assertRaisesRegexp',
                             'assertRaisesWithPredicateMatch', 'raises'})

Follow = Callable[[State, Sequence[ast.stmt]], str]


def follow_try(state: State, node: ast.Try, follow: Follow) -> str:
    """Follows a `try` and returns how it ends.

    Args:
      state: of the file.
      node: the statement.
      follow: follows a block.
    """
    outer, before = state.condition, dict(state.scope.names)
    endings = [_ending(handler.body) for handler in node.handlers]
    catches = [_caught(handler.type) for handler in node.handlers]
    survived = frozenset[str]().union(*(
        caught for caught, ending in zip(catches, endings) if ending != FAILS))
    mark, imports = len(state.uses), len(state.unknown)
    state.condition = outer.also(Condition(caught=survived)) if survived else outer
    state.depth += bool(frozenset().union(*catches))
    body_ends = follow(state, node.body)
    state.depth -= bool(frozenset().union(*catches))
    state.condition = outer
    after_body = state.scope.names
    branches: list[tuple[Bound, Condition]] = []
    ends = [body_ends]
    needed = _needed(state, mark, ALL)
    if not body_ends:
        state.condition = outer.also(Condition(only_if=needed))
        ends[0] = follow(state, node.orelse)
        if not ends[0]:
            branches.append((state.scope.names, Condition(only_if=needed)))
    is_sure = len(state.unknown) == imports and _is_simple(node.body)
    for handler, caught in zip(node.handlers, catches):
        condition = _of_handler(state, node.body, mark, caught, is_sure)
        _begin_handler(state, node.body, before, after_body)
        state.condition = outer.also(condition)
        ends.append(_follow_handler(state, handler, follow))
        if not ends[-1] and condition is not DEAD:
            branches.append((state.scope.names, condition))
    state.scope.names = joined(branches) if branches else after_body
    state.condition = outer
    last = follow(state, node.finalbody)
    return last or _together(ends)


def follow_with(state: State, node: ast.With | ast.AsyncWith) -> Condition:
    """Follows what a `with` opens, and returns what it catches in its body."""
    caught: frozenset[str] = frozenset()
    for item in node.items:
        walk(state, item.context_expr)
        call = item.context_expr
        if isinstance(call, ast.Call):
            function = call.func
            last = function.attr if isinstance(function, ast.Attribute) else (
                function.id if isinstance(function, ast.Name) else '')
            if last in _CATCHING_CALLS:
                caught = caught.union(*(_caught(one) for one in call.args))
    return Condition(caught=caught) if caught else ALWAYS


def ending_of(node: ast.stmt) -> str:
    """Returns how a statement ends the block that it is in, or `''`."""
    if isinstance(node, ast.Raise):
        return LEAVES if 'Skip' in _last_name(node.exc) else FAILS
    if isinstance(node, (ast.Return, ast.Continue, ast.Break)):
        return LEAVES
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        last = _last_name(node.value)
        if last in ('exit', '_exit', 'quit', 'abort'):
            return FAILS
    return ''


def _ending(body: Sequence[ast.stmt]) -> str:
    return next((end for one in body if (end := ending_of(one))), '')


def _last_name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ''


def _caught(node: ast.expr | None) -> frozenset[str]:
    """Returns the kinds of look-ups whose failure a handler of that type catches."""
    if node is None:
        return ALL
    types = node.elts if isinstance(node, ast.Tuple) else [node]
    return frozenset().union(*(_CAUGHT.get(_last_name(one), frozenset()) for one in types))


def _is_simple(body: Sequence[ast.stmt]) -> bool:
    """Whether statements do nothing but import and look up names."""
    return all(isinstance(one, (ast.Import, ast.ImportFrom, ast.Pass)) or isinstance(
        one, (ast.Assign, ast.Expr)) and isinstance(
            one.value, (ast.Name, ast.Attribute, ast.Constant)) for one in body)


def _needed(state: State, mark: int, caught: frozenset[str]) -> tuple[Question, ...]:
    """Returns what the body needs, of the kinds that a handler catches."""
    return tuple(dict.fromkeys(
        use.question for use, (kind, depth) in zip(state.uses[mark:], state.kinds[mark:])
        if kind in caught and depth == state.depth + 1))


def _of_handler(state: State, body: Sequence[ast.stmt], mark: int, caught: frozenset[str],
                is_sure: bool) -> Condition:
    """Returns when a handler runs."""
    if not caught:
        return ALWAYS  # Of other errors, which any call may raise.
    needed = _needed(state, mark, caught)
    if needed and (is_sure or caught != ALL):
        return Condition(unless=(needed,))
    if is_sure and body and all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in body):
        return DEAD  # It imports what the project has.
    return ALWAYS


def _begin_handler(state: State, body: Sequence[ast.stmt], before: Bound, after: Bound) -> None:
    """Sets what names mean at the beginning of a handler: the body may have ended anywhere."""
    if len(body) == 1:
        state.scope.names = dict(before)
    else:
        state.scope.names = joined([(before, ALWAYS), (after, ALWAYS)])


def _follow_handler(state: State, handler: ast.ExceptHandler, follow: Follow) -> str:
    walk(state, handler.type)
    if handler.name:
        state.bind(handler.name, OTHERS)
    return follow(state, handler.body)


def _together(ends: Sequence[str]) -> str:
    """Returns how a statement with several branches ends."""
    if not all(ends):
        return ''
    return FAILS if all(end == FAILS for end in ends) else LEAVES
