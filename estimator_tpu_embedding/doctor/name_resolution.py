"""Says what an expression may be: a name of a library, a module of the project, or a constant.

It follows calls that look up names: `getattr`, `importlib.import_module`, `exec` and their kin.
Where a name is looked up by a text that nobody can tell, or in a dict of all names, that is W202.
"""

from __future__ import annotations

import ast
import re

from .bindings import (
    ATTRIBUTE,
    GUARD,
    IMPORT,
    NONE,
    OTHERS,
    OWN,
    Meaning,
    Meanings,
    is_examined,
    is_unknown,
    union,
)
from .findings import TESTED, Question
from .symbol_table import MADE_NAMES, TENSORFLOW, State
from .syntax import VERSIONS, called_name, chain_of, last_name, text_of, written

_NONE = (Meaning(kind=NONE),)
_GUARD = (Meaning(kind=GUARD),)
IMPORTERS = frozenset({
    'LazyLoader', 'LazyModule', '__import__', 'import_module', 'importorskip', 'lazy_import',
    'lazy_load', 'try_import'})
"""Last names of functions that return the module which a constant argument names."""
SPECIAL = frozenset({'delattr', 'eval', 'exec', 'getattr', 'globals', 'locals', 'object', 'patch',
                     'setattr', 'vars'}) | IMPORTERS
"""Last names of functions that `called` knows."""
_NAMES_IN_TEXT = TENSORFLOW | {'eval', 'exec', 'getattr', 'globals', 'locals', 'vars'}
"""Words of an executed text that may look up names of libraries, beside those bound here."""
HARMLESS = frozenset('bool callable dir hasattr hash help id isinstance issubclass print reload '
                     'repr str type'.split())
"""Functions of Python that ask a module for no name, or that Python 3 does not have."""
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
_MOST_DEEP = 50
"""The most expressions inside each other that are followed."""
_MOST_NODES = 200


def meaning_of(state: State, node: ast.expr, depth: int = 0) -> Meanings:
    """Returns what an expression may be, and records nothing."""
    if depth >= _MOST_DEEP:
        return OTHERS
    if isinstance(node, ast.Name):
        return state.lookup(node.id) or OTHERS
    if isinstance(node, ast.Attribute):
        base, names = chain_of(node)
        return state.inside(meaning_of(state, base, depth + 1), '.'.join(names))
    if isinstance(node, ast.Constant) and node.value is None:
        return _NONE
    if isinstance(node, ast.Call):
        found = _of_call(state, node, depth + 1)
        return _GUARD if is_unknown(found) and is_guard(state, node) else found
    if isinstance(node, ast.IfExp):
        found = union(meaning_of(state, one, depth + 1) for one in (node.body, node.orelse))
        is_choice = any(one.is_module for one in found) and is_guard(state, node.test)
        return tuple(one.under(TESTED) for one in found) if is_choice else found
    if isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)) and is_guard(state, node):
        return _GUARD
    return OTHERS


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
    if state.parents and test not in state.hints:
        return False
    for number, node in enumerate(ast.walk(test)):
        if number > _MOST_NODES:
            return False
        if isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in VERSIONS:
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
        one.question.path.rpartition('.')[2] in VERSIONS) for one in found) or (
        isinstance(node, ast.Name) and any(one.choice for one in found))


def _of_call(state: State, node: ast.Call, depth: int) -> Meanings:
    function = node.func
    if isinstance(function, ast.Name) and function.id == 'getattr':
        name = text_of(node.args[1]) if len(node.args) > 1 else None
        if name is not None and name.isidentifier():
            return state.inside(meaning_of(state, node.args[0], depth), name)
        return OTHERS
    name = imported_by(node)
    if name is None:
        is_own = all(one.kind == OWN for one in meaning_of(state, function, depth))
        return (Meaning(kind=OWN),) if is_own else OTHERS
    if isinstance(function, ast.Name) and function.id == '__import__' and (
            len(node.args) < 4 and not any(one.arg == 'fromlist' for one in node.keywords)):
        name = name.partition('.')[0]
    found = state.project.find(state.file, name)
    if found is None:
        return (Meaning(Question(name)),)
    return (Meaning(file=found),) if found else OTHERS


def called(state: State, node: ast.Call, last: str) -> None:
    """Records what a call looks up, beside what its arguments use; `last` is one of `SPECIAL`."""
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
    for one in state.final(meaning_of(state, base), name):
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
            state.imports.setdefault(state.project.shown(found), state.places.of(node))
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


def note_text(state: State, node: ast.expr, meanings: Meanings, names: str) -> None:
    """Lists `sys.modules`, and a function that looks names up by texts if it is not just called."""
    if not any(one.file or one.question and one.question.module.partition('.')[0] in _MODULES
               for one in meanings):
        return
    parent = state.parents[node]
    for one in state.final(meanings, names):
        path = one.question.path if one.question is not None else ''
        if path in _BY_TEXT or path.startswith('__main__'):
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
