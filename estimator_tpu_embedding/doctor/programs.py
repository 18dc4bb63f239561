"""Tells programs from modules that other files import."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .places import Parsed

SURE, PERHAPS = 'sure', 'perhaps'
"""A program for sure, or unless another file imports it."""
_RUNS = frozenset({'tensorflow.app.run', 'absl.app.run', 'tensorflow.compat.v1.app.run',
                   'tensorflow.test.main', 'tensorflow.compat.v1.test.main', 'unittest.main'})


def kind(tree: ast.Module, path_of: Callable[[ast.expr], str | None]) -> str:
    """Returns `SURE`, `PERHAPS`, or `''` for a file that runs nothing when it is started.

    Args:
      tree: of the file.
      path_of: returns the path of a name of a library, or `None`.
    """
    found = ''
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _is_main(node.test):
            return SURE
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            waiting += [*node.body, *getattr(node, 'orelse', ())]
        if isinstance(node, (ast.For, ast.With)) and not found:
            found = PERHAPS if isinstance(node, ast.With) else found
        if isinstance(node, (ast.Expr, ast.Assign)) and isinstance(node.value, ast.Call):
            path = path_of(node.value.func)
            if path in _RUNS or (path or '').endswith('.app.run'):
                return SURE
            if isinstance(node, ast.Expr) and (path is None or path == 'builtins.print'):
                found = PERHAPS
    return found


def may_be(parsed: Parsed, text: str) -> bool:
    """Whether a file that does not parse to its end has a main part."""
    return bool(parsed.problems) and '__main__' in text


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(one, ast.Name) and one.id == '__name__'
        for one in (test.left, *test.comparators)) and any(
        isinstance(one, ast.Constant) and one.value == '__main__'
        for one in (test.left, *test.comparators))
