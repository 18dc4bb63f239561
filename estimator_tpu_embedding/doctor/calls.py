"""Follows calls that look up names: `getattr`, `importlib.import_module`, `exec` and their kin."""

from __future__ import annotations

import ast
import re

from .facts import Question
from .lookups import IMPORTERS, imported_by, inside, is_of_library, is_watched, meaning_of, path_of
from .meanings import ATTRIBUTE, IMPORT, is_examined
from .nodes import text_of, written
from .state import TENSORFLOW, State

SPECIAL = frozenset({'delattr', 'eval', 'exec', 'getattr', 'globals', 'locals', 'object', 'patch',
                     'setattr', 'vars'}) | IMPORTERS
"""Last names of functions that `called` knows."""
_NAMES_IN_TEXT = TENSORFLOW | {'eval', 'exec', 'getattr', 'globals', 'locals', 'vars'}
"""Words of an executed text that may look up names of libraries, beside those bound here."""


def called(state: State, node: ast.Call, last: str) -> None:
    """Records what a call looks up, beside what its arguments use.

    Args:
      state: of the file.
      node: the call.
      last: the last name of its function, one of `SPECIAL`.
    """
    path = path_of(state, node.func)
    if path in ('builtins.getattr', 'unittest.mock.patch.object', 'mock.patch.object') and (
            len(node.args) > 1):
        _got(state, node, path == 'builtins.getattr')
    elif path in ('builtins.setattr', 'builtins.delattr') and len(node.args) > 1:
        name = text_of(node.args[1])
        if name is not None:
            patched(state, node.args[0], name)
        state.is_open |= state.scope is state.module
    elif path in ('builtins.globals', 'builtins.locals', 'builtins.vars'):
        state.is_open |= state.scope is state.module or last == 'globals'
    elif path in ('builtins.exec', 'builtins.eval') and node.args:
        _executed(state, node, last)
    elif last in IMPORTERS:
        _imported(state, node, path)
    elif path in ('unittest.mock.patch', 'mock.patch') and node.args:
        name = text_of(node.args[0])
        module, _, names = (name or '').partition('.')
        if name is None:
            say_made(state, node, 'the name to replace is made at run time')
        elif names and is_examined(module):
            state.use(node, Question(module, names), name, ATTRIBUTE)


def patched(state: State, base: ast.expr, name: str) -> None:
    """Records that a name of a library is assigned to, such as `np.int = int`."""
    for one in state.final(inside(state, meaning_of(state, base), [name]), ''):
        if one.question is not None:
            path = one.question.path
            if state.scope is state.module and path not in state.patched:
                state.early.update(use for use in state.uses
                                   if f'{use.question.path}.'.startswith(f'{path}.'))
            state.patched.add(path)


def _got(state: State, node: ast.Call, may_have_default: bool) -> None:
    """Records `getattr(tf, 'name')`; with a third argument, the program goes on without it."""
    base, name = meaning_of(state, node.args[0]), text_of(node.args[1])
    if name is not None and name.isidentifier():
        state.use_names(node, base, name, written(node),
                        is_survived=may_have_default and len(node.args) > 2)
    elif is_of_library(state, base):
        say_made(state, node, f'a name of {written(node.args[0])} is made at run time'
                 if name is None else 'its text is not one name')


def _executed(state: State, node: ast.Call, last: str) -> None:
    text = text_of(node.args[0])
    if text is not None:
        if 'import' in text or any(
                name in _NAMES_IN_TEXT or is_watched(state.lookup(name) or ())
                for name in re.findall(r'\w+', text)):
            say_made(state, node, f'{last} runs a text that uses libraries')
    elif not isinstance(node.args[0], ast.Constant):
        say_made(state, node, f'{last} runs a text that is made at run time')
        state.is_open |= last == 'exec'


def _imported(state: State, node: ast.Call, path: str) -> None:
    name = imported_by(node)
    if name is not None:
        found = state.project.find(state.file, name)
        if found is None:
            state.use(node, Question(name), written(node), IMPORT)
        elif found:
            state.imports.setdefault(state.project.name(found), state.places.of(node))
    elif path in ('importlib.import_module', 'builtins.__import__') and not _is_relative(
            state, node):
        say_made(state, node, 'the name of this module is made at run time')


def _is_relative(state: State, node: ast.Call) -> bool:
    """Whether a call imports a module of its own package, all of which are scanned."""
    arguments = [*node.args[1:], *(one.value for one in node.keywords if one.arg == 'package')]
    package = text_of(arguments[0]) if arguments else ''
    if not node.args or package and state.project.find(state.file, package) is None:
        return False
    name = node.args[0]
    while isinstance(name, ast.BinOp):
        name = name.left
    if isinstance(name, ast.JoinedStr) and name.values:
        name = name.values[0]
    return (text_of(name) or '').startswith('.')


def say_made(state: State, node: ast.expr, what: str) -> None:
    """Lists W202: a look-up by a text, of which nobody can tell what it finds."""
    subject = node.func if isinstance(node, ast.Call) else node
    state.say('W202', node, written(subject), written(node), f'{what}, so nobody can check it')
