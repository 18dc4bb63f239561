"""Says what an expression may be: a name of a library, a module of the project, or a constant."""

from __future__ import annotations

import ast

from .facts import Question
from .meanings import OBJECT, OTHERS, OWN, Constant, Meaning, Meanings, is_examined, union
from .state import State

_NONE = (Meaning(constant=Constant(None)),)
_TRUE = (Meaning(constant=Constant(True)),)
_FALSE = (Meaning(constant=Constant(False)),)
IMPORTERS = frozenset({
    'LazyLoader', 'LazyModule', '__import__', 'import_module', 'importorskip', 'lazy_import',
    'lazy_load', 'try_import'})
"""Last names of functions that return the module which a constant argument names."""
_HAND_OUT = frozenset({
    'builtins', 'copy', 'functools', 'importlib', 'operator', 'pkgutil', 'types'})
"""Modules whose functions may return a module that they were given."""
_MOST_DEEP = 50
"""The most conditional expressions inside each other that are followed."""


def meaning_of(state: State, node: ast.expr, depth: int = 0) -> Meanings:
    """Returns what an expression may be, and records nothing."""
    if isinstance(node, ast.Name):
        found = state.lookup(node.id)
        return OTHERS if found is None else found
    if isinstance(node, ast.Attribute):
        base, names = chain_of(node)
        meanings = meaning_of(state, base, depth + 1) if depth < _MOST_DEEP else OTHERS
        return OTHERS if meanings is OTHERS else inside(state, meanings, names)
    if isinstance(node, ast.Constant):
        if node.value is None or isinstance(node.value, bool):
            return _NONE if node.value is None else _TRUE if node.value else _FALSE
    elif depth >= _MOST_DEEP:
        pass
    elif isinstance(node, ast.Call):
        return _of_call(state, node, depth + 1)
    return OTHERS


def inside(state: State, meanings: Meanings, names: list[str]) -> Meanings:
    """Returns what dotted names in something are; those of other files stay unresolved."""
    if not names:
        return meanings
    result: Meanings = ()
    dotted = '.'.join(names)
    for one in meanings:
        new: Meanings = OTHERS
        if one.question is not None:
            new = (one.asks(state.below(one.question, dotted)),)
        elif one.file:
            new = (one._replace(names=f'{one.names}.{dotted}' if one.names else dotted),)
        elif one == OBJECT:
            new = (OBJECT,)
        result = union(result, new)
    return result


def chain_of(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """Returns the base of a chain of attributes, and their names."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.reverse()
    return node, names


def path_of(state: State, node: ast.expr) -> str:
    """Returns the path of a name of a library, such as `'os.path.join'`, or `''`.

    A name that nothing binds is one of `builtins`.
    """
    if isinstance(node, ast.Name) and state.lookup(node.id) is None:
        return f'builtins.{node.id}'
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return ''
    for one in state.final(meaning_of(state, node), ''):
        if one.question is not None:
            return one.question.path
    return ''


def text_of(node: ast.expr | None) -> str | None:
    """Returns a constant text, or `None`."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def module_named(state: State, name: str) -> Meanings:
    """Returns the module of that whole name."""
    found = state.project.find(state.file, name)
    if found is not None:
        return (Meaning(file=found),) if found else OTHERS
    return (Meaning(Question(name)),)


def imported_by(node: ast.Call) -> str | None:
    """Returns the module that a call such as `importlib.import_module('a.b')` names, or `None`."""
    function = node.func
    last = function.attr if isinstance(function, ast.Attribute) else (
        function.id if isinstance(function, ast.Name) else '')
    if last not in IMPORTERS or not node.args:
        return None
    texts = [text for one in node.args if (text := text_of(one)) is not None]
    if not texts:
        return None
    # `LazyLoader('slim', globals(), 'tensorflow.contrib.slim')` has the module last.
    name = texts[-1] if last.startswith(('Lazy', 'lazy')) else texts[0]
    if name.startswith('.') or not all(part.isidentifier() for part in name.split('.')):
        return None
    return name


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
    is_plain = isinstance(function, ast.Name) and function.id == '__import__' and (
        len(node.args) < 4 and not any(one.arg == 'fromlist' for one in node.keywords))
    return module_named(state, name.partition('.')[0] if is_plain else name)


def _returned(functions: Meanings) -> Meanings:
    """Returns what a call makes: an object of a class of the file, or of a known library."""
    for one in functions:
        if one.question is not None:
            module = one.question.module.partition('.')[0]
            if module.startswith('tensorflow') or module in _HAND_OUT or module != 'mock' and (
                    not is_examined(module)):
                return OTHERS
        elif one not in (OBJECT, OWN):
            return OTHERS
    return tuple(OWN if one == OWN else OBJECT for one in functions)


def is_watched(meanings: Meanings) -> bool:
    """Whether one of them is a library whose names are looked up."""
    return any(one.question is not None and is_examined(one.question.module) for one in meanings)
