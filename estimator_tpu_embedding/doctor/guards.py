"""Says what a `try` catches, and when its handlers run.

The answers of the libraries decide: a handler is reached if the body lacks something, and only
then. So `try: import a / except ImportError: import b` is no false alarm, and a program that can
import neither is found.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .facts import Question
from .meanings import ALL, ALWAYS, ATTRIBUTE, GUARDED, IMPORT, NAME, Condition
from .nodes import called_name, last_name
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


def is_never(test: ast.expr) -> bool:
    """Whether a test is false in every run."""
    return isinstance(test, ast.Constant) and not test.value or isinstance(
        test, (ast.Name, ast.Attribute)) and last_name(test) == 'TYPE_CHECKING'


def caught_by(node: ast.expr | None) -> frozenset[str]:
    """Returns the kinds of look-ups whose failure a handler of that type catches."""
    if node is None:
        return ALL
    types = node.elts if isinstance(node, ast.Tuple) else [node]
    return frozenset().union(*(_CAUGHT.get(last_name(one), frozenset()) for one in types))


def suppressed_by(node: ast.expr) -> frozenset[str]:
    """Returns the kinds of look-ups whose failure is caught in a `with` of an expression."""
    if not isinstance(node, ast.Call) or called_name(node) not in _CATCHING_CALLS:
        return frozenset()
    return frozenset().union(*map(caught_by, node.args))


def ending(body: Sequence[ast.stmt]) -> str:
    """Returns how a block ends: `LEAVES`, `FAILS`, or `''` if it goes on."""
    return next((end for one in body if (end := _ending_of(one))), '')


def _ending_of(node: ast.stmt) -> str:
    if isinstance(node, ast.Raise):
        return LEAVES if 'Skip' in last_name(node.exc) else FAILS
    if isinstance(node, (ast.Return, ast.Continue, ast.Break)):
        return LEAVES
    is_exit = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (
        last_name(node.value) in ('exit', '_exit', 'quit', 'abort'))
    return FAILS if is_exit else ''


def needed(state: State, node: ast.AST, mark: int, kinds: frozenset[str] = ALL
           ) -> tuple[Question, ...]:
    """Returns what the body of a `try` needs, of some kinds, in the uses from `mark` on."""
    return tuple(dict.fromkeys(
        use.question for use, (kind, trying) in zip(state.uses[mark:], state.tried[mark:])
        if kind in kinds and trying is node))


def after_failure(state: State, node: ast.Try, caught: frozenset[str], mark: int, is_sure: bool
                  ) -> Condition:
    """Returns when a handler runs.

    Args:
      state: after the body was followed.
      node: the statement.
      caught: the kinds of look-ups that the handler catches.
      mark: number of uses before the body.
      is_sure: whether all imports of the body were resolved.
    """
    if not caught:
        return ALWAYS  # Of other errors, which any call may raise.
    questions = needed(state, node, mark, caught)
    is_sure &= all(isinstance(one, (ast.Import, ast.ImportFrom, ast.Pass)) or isinstance(
        one, (ast.Assign, ast.Expr)) and isinstance(
            one.value, (ast.Name, ast.Attribute, ast.Constant)) for one in node.body)
    if questions and (is_sure or caught != ALL):
        return Condition(unless=(questions,))
    is_import = all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in node.body)
    return GUARDED if is_sure and is_import else ALWAYS  # It imports what the project has.
