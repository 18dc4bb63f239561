"""Says what an expression may be: a name of a library, a module of the project, or a constant."""

from __future__ import annotations

import ast

from .facts import Question
from .meanings import (
    ALWAYS,
    GUARD,
    GUARDED,
    NONE,
    OBJECT,
    OTHERS,
    OWN,
    Meaning,
    Meanings,
    is_examined,
    is_unknown,
    union,
)
from .nodes import called_name, chain_of, last_name, text_of
from .state import MADE_NAMES, State

_NONE = (Meaning(kind=NONE),)
_GUARD = (Meaning(kind=GUARD),)
IMPORTERS = frozenset({
    'LazyLoader', 'LazyModule', '__import__', 'import_module', 'importorskip', 'lazy_import',
    'lazy_load', 'try_import'})
"""Last names of functions that return the module which a constant argument names."""
_HAND_OUT = frozenset({
    'builtins', 'copy', 'functools', 'importlib', 'operator', 'pkgutil', 'types'})
"""Modules whose functions may return a module that they were given."""
_MOST_DEEP = 50
"""The most expressions inside each other that are followed."""
_VERSIONS = frozenset({
    '__version__', 'VERSION', 'GIT_VERSION', 'version_info', 'hexversion', 'PY2', 'PY3', 'PY34',
    'LooseVersion', 'StrictVersion', 'parse_version', 'find_spec', 'find_loader'})
"""Words of a test that asks for a version, or whether a module is there."""
_MOST_NODES = 200


def meaning_of(state: State, node: ast.expr, depth: int = 0) -> Meanings:
    """Returns what an expression may be, and records nothing."""
    if depth >= _MOST_DEEP:
        return OTHERS
    if isinstance(node, ast.Name):
        return state.lookup(node.id) or OTHERS
    if isinstance(node, ast.Attribute):
        base, names = chain_of(node)
        return inside(state, meaning_of(state, base, depth + 1), names)
    if isinstance(node, ast.Constant) and node.value is None:
        return _NONE
    if isinstance(node, ast.Call):
        found = _of_call(state, node, depth + 1)
        return _GUARD if is_unknown(found) and is_guard(state, node) else found
    if isinstance(node, ast.IfExp):
        found = union(meaning_of(state, one, depth + 1) for one in (node.body, node.orelse))
        is_choice = any(one.is_module for one in found) and is_guard(state, node.test)
        return tuple(one.under(GUARDED) for one in found) if is_choice else found
    if isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)) and is_guard(state, node):
        return _GUARD
    return OTHERS


def inside(state: State, meanings: Meanings, names: list[str]) -> Meanings:
    """Returns what dotted names in something are; those of other files stay unresolved."""
    dotted = '.'.join(names)
    return union((one.inside(dotted) if one.question is None else one._replace(
        question=state.below(one.question, dotted)),) for one in meanings)


def path_of(state: State, node: ast.expr) -> str:
    """Returns the path of a name of a library, such as `'os.path.join'`, or `''`.

    A name that nothing binds is one of `builtins`.
    """
    if isinstance(node, ast.Name) and state.lookup(node.id) is None:
        return f'builtins.{node.id}'
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return ''
    return next((one.question.path for one in state.final(meaning_of(state, node), '')
                 if one.question is not None), '')


def imported_by(node: ast.Call) -> str | None:
    """Returns the module that a call such as `importlib.import_module('a.b')` names, or `None`."""
    last = called_name(node)
    texts = [text for one in node.args if (text := text_of(one)) is not None]
    if last not in IMPORTERS or not texts:
        return None
    # `LazyLoader('slim', globals(), 'tensorflow.contrib.slim')` has the module last.
    name = texts[-1] if last.startswith(('Lazy', 'lazy')) else texts[0]
    return name if all(part.isidentifier() for part in name.split('.')) else None


def is_of_library(state: State, meanings: Meanings) -> bool:
    """Whether one of some meanings is of a library whose made names are listed as W202."""
    return any(one.question is not None and one.question.module.startswith(MADE_NAMES)
               for one in state.final(meanings, ''))


def is_watched(meanings: Meanings) -> bool:
    """Whether one of them is a library whose names are looked up."""
    return any(one.question is not None and is_examined(one.question.module) for one in meanings)


def is_guard(state: State, test: ast.expr) -> bool:
    """Whether a test asks for a version, for a name of a library, or whether an import failed.

    It is not evaluated. What is missing under it is told as guarded, with its line; and so is what
    it chooses between.
    """
    parts, tested = [test], list[ast.expr]()
    while parts:
        part = parts.pop()
        if isinstance(part, ast.BoolOp):
            parts += part.values
        elif isinstance(part, ast.UnaryOp):
            parts.append(part.operand)
        elif isinstance(part, ast.Compare) and isinstance(part.comparators[0], ast.Constant):
            parts.append(part.left)
        elif isinstance(part, (ast.Name, ast.Attribute)):
            tested.append(part)
    if len(tested) < _MOST_NODES and any(map(lambda one: _is_decided(state, one), tested)):
        return True
    for number, node in enumerate(ast.walk(test)):
        if number > _MOST_NODES:
            return False
        if isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in _VERSIONS:
            return True
        if isinstance(node, ast.Attribute) and node.attr == 'version' and (
                path_of(state, node) == 'sys.version'):
            return True
        if isinstance(node, ast.Call) and called_name(node) in ('hasattr', 'dir') and node.args:
            if is_watched(state.final(meaning_of(state, node.args[0]), '')):
                return True
    return False


def _is_decided(state: State, node: ast.expr) -> bool:
    """Whether a name is the result of such a test, or differs where an import failed."""
    found = state.final(meaning_of(state, node), '')
    return any(one.kind == GUARD or one.question is not None and (
        one.question.path.rpartition('.')[2] in _VERSIONS) for one in found) or (
        isinstance(node, ast.Name) and any(one.when is not ALWAYS for one in found))


def _of_call(state: State, node: ast.Call, depth: int) -> Meanings:
    function = node.func
    if isinstance(function, ast.Name) and function.id == 'getattr':
        name = text_of(node.args[1]) if len(node.args) > 1 else None
        if name is not None and name.isidentifier():
            return inside(state, meaning_of(state, node.args[0], depth), [name])
        return OTHERS
    name = imported_by(node)
    if name is None:
        return _returned(meaning_of(state, function, depth))
    if isinstance(function, ast.Name) and function.id == '__import__' and (
            len(node.args) < 4 and not any(one.arg == 'fromlist' for one in node.keywords)):
        name = name.partition('.')[0]
    found = state.project.find(state.file, name)
    if found is None:
        return (Meaning(Question(name)),)
    return (Meaning(file=found),) if found else OTHERS


def _returned(functions: Meanings) -> Meanings:
    """Returns what a call makes: an object of a class of the file, or of a known library."""
    for one in functions:
        if one.question is not None:
            module = one.question.module.partition('.')[0]
            if module.startswith('tensorflow') or module in _HAND_OUT or module != 'mock' and (
                    not is_examined(module)):
                return OTHERS
        elif one.kind not in (OBJECT, OWN):
            return OTHERS
    return tuple(Meaning(kind=OWN if one.kind == OWN else OBJECT) for one in functions)
