"""Tells programs from modules that other files import."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from .places import Parsed

SURE, PERHAPS = 'sure', 'perhaps'
"""A program for sure, or unless another file imports it."""
_DECLARES = re.compile(r'\bflags\b|\blogging\b|load_|enable_|disable_')
"""Names of TensorFlow that a module may call when it is imported."""
_RUNS = frozenset({'tensorflow.app.run', 'absl.app.run', 'tensorflow.compat.v1.app.run',
                   'tensorflow.test.main', 'tensorflow.compat.v1.test.main', 'unittest.main'})


def kind(tree: ast.Module, paths_of: Callable[[ast.expr], Sequence[str]]) -> str:
    """Returns `SURE`, `PERHAPS`, or `''` for a file that runs nothing when it is started.

    Args:
      tree: of the file.
      paths_of: returns the paths of a name of a library; none for other expressions.
    """
    found = ''
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _is_main(node.test):
            return SURE
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            waiting += [*node.body, *getattr(node, 'orelse', ())]
        if isinstance(node, ast.With):
            found = PERHAPS
        if isinstance(node, (ast.Expr, ast.Assign)) and isinstance(node.value, ast.Call):
            path = ''.join(paths_of(node.value.func)[:1])
            if path in _RUNS or path.endswith('.app.run'):
                return SURE
            if isinstance(node, ast.Expr) and (not path or path.startswith('builtins.')) or (
                    path.startswith('tensorflow.') and not _DECLARES.search(path)):
                found = PERHAPS
    return found


def kind_of_rest(parsed: Parsed, text: str) -> str:
    """Returns `SURE`, `PERHAPS` or `''` for a file of which only the beginning was parsed."""
    if '__main__' in text:
        return SURE
    lines = text.split('\n')
    line = min(problem.place.line for problem in parsed.problems if problem.place)
    # A statement at its top level does not parse.
    return PERHAPS if lines[line - 1][:1].isalpha() and not lines[line - 1].startswith(
        ('def ', 'class ', 'import ', 'from ')) else ''


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(one, ast.Name) and one.id == '__name__'
        for one in (test.left, *test.comparators)) and any(
        isinstance(one, ast.Constant) and one.value == '__main__'
        for one in (test.left, *test.comparators))
