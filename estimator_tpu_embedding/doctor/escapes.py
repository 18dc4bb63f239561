"""Counts the modules of libraries that leave the ways on which the scan follows names.

A module that is passed on, returned or kept may be asked for a name where nobody sees it. The scan
follows `tf.train.Saver`, imports, aliases such as `t = tf`, and defaults of arguments. A name in
any other place is noted, also a module of the project that has modules of libraries. Which of all
these are modules is asked of the libraries. Functions and dicts that give any name by its text are
listed too, unless `lookups` follows them.
"""

from __future__ import annotations

import ast

from .lookups import SPECIAL, is_of_library, is_watched, meaning_of, path_of, say_made
from .meanings import Meanings
from .state import State
from .syntax import called_name, text_of, written

_ASKS_NOTHING = (  # Around a module that is only compared, tested or printed, or that is none.
    ast.AsyncFor, ast.AsyncFunctionDef, ast.ClassDef, ast.Compare, ast.Delete, ast.Expr, ast.For,
    ast.FormattedValue, ast.FunctionDef, ast.MatchClass, ast.MatchValue, ast.UnaryOp, ast.arg,
    ast.arguments, ast.comprehension)  # A default is followed.
_HARMLESS = frozenset('bool callable dir hasattr hash help id isinstance issubclass print reload '
                      'repr str type'.split())
"""Functions of Python that ask a module for no name, or that Python 3 does not have."""
_LOOK_UP = frozenset({
    'builtins.delattr', 'builtins.getattr', 'builtins.setattr', 'mock.patch.object',
    'unittest.mock.patch.object'})
_INNER = frozenset({
    '__delattr__', '__dict__', '__getattr__', '__getattribute__', '__loader__', '__setattr__',
    '__spec__'})
"""Attributes of a module that lead to its names by texts."""

BUILTINS = frozenset({'__builtins__', '__import__', 'eval', 'exec', 'globals', 'locals'})
"""Names of Python that look up others by texts."""
_BY_TEXT = frozenset({f'builtins.{name}' for name in BUILTINS}) | {
    'cProfile.run', 'cProfile.runctx', 'code.InteractiveConsole', 'code.InteractiveInterpreter',
    'code.interact', 'doctest.testfile', 'doctest.testmod', 'imp.load_module', 'imp.load_source',
    'importlib.__import__', 'importlib.import_module', 'importlib.machinery.SourceFileLoader',
    'importlib.util.module_from_spec', 'inspect.getmodule', 'mock.patch.multiple', 'pdb.run',
    'pkgutil.resolve_name', 'profile.run', 'pydoc.locate', 'runpy.run_module', 'runpy.run_path',
    'timeit.Timer', 'timeit.repeat', 'timeit.timeit', 'trace.Trace',
    'unittest.mock.patch.multiple', 'zipimport.zipimporter'}
_MODULES = frozenset(path.partition('.')[0] for path in _BY_TEXT) | {'sys', '__main__'}
_AROUND = frozenset({'__globals__', 'f_globals', 'f_locals', 'func_globals'})
"""Attributes of functions and frames that hold the names around them."""
_IN_DICT = 'names are looked up in a dict'


def note(state: State, node: ast.expr, meanings: Meanings, names: str = '') -> None:
    """Notes names of libraries that stand where the scan does not follow them.

    Args:
      state: of the file.
      node: the whole chain of names, or a call that gives a module.
      meanings: of the base of the chain.
      names: that are looked up in the base, dotted.
    """
    if state.is_never or node not in state.parents:
        return
    parts = names.split('.')
    inner = next((place for place, name in enumerate(parts) if name in _INNER), len(parts))
    names = '.'.join(parts[:inner])
    if any(one.file or one.question and one.question.module.partition('.')[0] in _MODULES
           for one in meanings):
        _note_text(state, node, state.final(meanings, names))
    if inner < len(parts) or not _is_followed(state, node):
        state.note_modules(node, written(node), state.final(meanings, names))


def note_attributes(state: State, node: ast.Attribute, names: list[str]) -> None:
    """Lists a dict with the names around some function or frame."""
    if not _AROUND.isdisjoint(names):
        say_made(state, node, _IN_DICT)


def note_dict(state: State, node: ast.Call, last: str) -> None:
    """Lists a call of `globals`, `locals` or `vars` unless it is seen which names are taken."""
    if node in state.parents and not node.args and (
            path_of(state, node.func) == f'builtins.{last}'):
        scope = state.module if last == 'globals' else state.scope
        if any(is_watched(one.meanings) for several in scope.names.values() for one in several):
            _note_dict(state, node)


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
    path = path_of(state, call.func) if last in _HARMLESS or last in SPECIAL else ''
    if path == f'builtins.{last}' and last in _HARMLESS:
        return True
    if path not in _LOOK_UP or node is not call.args[0]:
        return False
    name = text_of(call.args[1]) if len(call.args) > 1 else None
    return (name or '').isidentifier() or (  # Otherwise it is W202.
        last == 'getattr' and is_of_library(state, meaning_of(state, node)))


def _note_text(state: State, node: ast.expr, meanings: Meanings) -> None:
    """Lists `sys.modules`, and a function that looks names up by texts if it is not just called."""
    parent = state.parents[node]
    for one in meanings:
        path = one.question.path if one.question is not None else ''
        if path in _BY_TEXT or path.startswith('__main__'):
            last = called_name(parent) if isinstance(parent, ast.Call) else ''
            is_seen = last in _HARMLESS
            if isinstance(parent, ast.Call) and parent.func is node:  # A lambda is no text.
                is_seen = last in SPECIAL and path.endswith(f'.{last}') or any(
                    isinstance(one, ast.Lambda) for one in parent.args)
            if not is_seen:
                say_made(state, node, 'what this looks up or runs is not followed')
        elif path == 'sys.modules':
            _note_dict(state, node)
        elif path.startswith('sys.modules.'):
            say_made(state, node, _IN_DICT)


def _note_dict(state: State, node: ast.expr) -> None:
    """Lists a dict with all names or modules, unless it is seen that nothing is asked of these."""
    parent = state.parents[node]
    above = state.parents.get(parent)
    if isinstance(parent, ast.Subscript):
        name = text_of(parent.slice)
        is_seen = not isinstance(parent.ctx, ast.Load) or name is not None and isinstance(
            node, ast.Call) and not is_watched(state.lookup(name) or ())
    elif isinstance(parent, ast.Call):
        is_seen = called_name(parent) in SPECIAL | _HARMLESS
    else:
        is_seen = (isinstance(parent, (ast.Compare, ast.For, ast.Starred, ast.comprehension))
                   or isinstance(parent, ast.keyword) and isinstance(above, ast.Call)
                   and called_name(above) == 'format'
                   or isinstance(parent, ast.BinOp) and isinstance(parent.left, ast.Constant)
                   or isinstance(parent, ast.Attribute) and parent.attr == 'update')
    if not is_seen:
        say_made(state, node, _IN_DICT)
