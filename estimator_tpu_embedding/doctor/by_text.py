"""Lists look-ups by texts that `calls` does not follow: functions and dicts that give any name."""

from __future__ import annotations

import ast

from .calls import SPECIAL, say_made
from .lookups import is_watched, path_of, text_of
from .meanings import Meanings
from .nodes import called_name
from .state import State

BUILTINS = frozenset({'__builtins__', '__import__', 'eval', 'exec', 'globals', 'locals'})
"""Names of Python that look up others by texts."""
HARMLESS = frozenset('bool callable dir hasattr hash help id isinstance issubclass print repr str '
                     'type'.split())
"""Functions of Python that ask a module for no name, or do not fail without it."""
_PATHS = frozenset({f'builtins.{name}' for name in BUILTINS}) | {
    'cProfile.run', 'cProfile.runctx', 'code.InteractiveConsole', 'code.InteractiveInterpreter',
    'code.interact', 'doctest.testfile', 'doctest.testmod', 'imp.load_module', 'imp.load_source',
    'importlib.__import__', 'importlib.import_module', 'importlib.machinery.SourceFileLoader',
    'importlib.util.module_from_spec', 'inspect.getmodule', 'mock.patch.multiple', 'pdb.run',
    'pkgutil.resolve_name', 'profile.run', 'pydoc.locate', 'runpy.run_module', 'runpy.run_path',
    'timeit.Timer', 'timeit.repeat', 'timeit.timeit', 'trace.Trace',
    'unittest.mock.patch.multiple', 'zipimport.zipimporter'}
_MODULES = frozenset(path.partition('.')[0] for path in _PATHS) | {'sys', '__main__'}
_AROUND = frozenset({'__globals__', 'f_globals', 'f_locals', 'func_globals'})
"""Attributes of functions and frames that hold the names around them."""
_IN_DICT = 'names are looked up in a dict'


def note(state: State, node: ast.expr, meanings: Meanings, names: str) -> None:
    """Lists `sys.modules`, and a function that looks names up by texts if it is not just called."""
    if not any(one.file or one.question and one.question.module.partition('.')[0] in _MODULES
               for one in meanings):
        return
    parent = state.parents[node]
    for one in state.final(meanings, names):
        path = one.question.path if one.question is not None else ''
        if path in _PATHS or path.startswith('__main__'):
            last = called_name(parent) if isinstance(parent, ast.Call) else ''
            is_seen = last in HARMLESS
            if isinstance(parent, ast.Call) and parent.func is node:  # A lambda is no text.
                is_seen = last in SPECIAL and path.endswith(f'.{last}') or any(
                    isinstance(one, ast.Lambda) for one in parent.args)
            if not is_seen:
                say_made(state, node, 'what this looks up or runs is not followed')
        elif path == 'sys.modules':
            _note_dict(state, node)
        elif path.startswith('sys.modules.'):
            say_made(state, node, _IN_DICT)


def note_attributes(state: State, node: ast.Attribute, names: list[str]) -> None:
    """Lists a dict with the names around some function or frame."""
    if not _AROUND.isdisjoint(names) and not state.is_shallow:
        say_made(state, node, _IN_DICT)


def note_call(state: State, node: ast.Call, last: str) -> None:
    """Lists a call of `globals`, `locals` or `vars` unless it is seen which names are taken."""
    if node in state.parents and not node.args and path_of(state, node.func) == f'builtins.{last}':
        scope = state.module if last == 'globals' else state.scope
        if any(map(is_watched, scope.names.values())):
            _note_dict(state, node)


def _note_dict(state: State, node: ast.expr) -> None:
    """Lists a dict with all names or modules, unless it is seen that nothing is asked of these."""
    parent = state.parents[node]
    above = state.parents.get(parent)
    if isinstance(parent, ast.Subscript):
        name = text_of(parent.slice)
        is_seen = not isinstance(parent.ctx, ast.Load) or name is not None and isinstance(
            node, ast.Call) and not is_watched(state.lookup(name) or ())
    elif isinstance(parent, ast.Call):
        is_seen = called_name(parent) in SPECIAL | HARMLESS
    else:
        is_seen = (isinstance(parent, (ast.Compare, ast.For, ast.Starred, ast.comprehension))
                   or isinstance(parent, ast.keyword) and isinstance(above, ast.Call)
                   and called_name(above) == 'format'
                   or isinstance(parent, ast.BinOp) and isinstance(parent.left, ast.Constant)
                   or isinstance(parent, ast.Attribute) and parent.attr == 'update')
    if not is_seen:
        say_made(state, node, _IN_DICT)
