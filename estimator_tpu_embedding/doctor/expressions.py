"""Follows expressions: says what each may be, and records which names of libraries it uses.

An expression may be a name of a library, a module of the project, or a constant. Calls that look up
names are followed too: `getattr`, `importlib.import_module`, `exec` and their kin. Where a name is
looked up by a text that nobody can tell, or in a dict of all names, that is W202.

A module of a library that is passed on, returned or kept may be asked for a name where nobody sees
it. The scan follows `tf.train.Saver`, imports, aliases such as `t = tf`, and defaults of arguments.
A name in any other place escapes: it is noted, also a module of the project that has modules of
libraries. Which of all these are modules is asked of the libraries.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from .findings import FALLBACK, TESTED, TRIED, Question
from .symbol_table import (
    ATTRIBUTE,
    FLAGS,
    GUARD,
    IMPORT,
    MADE_NAMES,
    NAME,
    NONE,
    OTHERS,
    OWN,
    PYTHON_2,
    TENSORFLOW,
    Block,
    Meaning,
    Meanings,
    Scope,
    State,
    is_examined,
    is_unknown,
    union,
)
from .syntax import FIELDS, VERSIONS, chain_of, last_name, text_of, written

_NONE = (Meaning(kind=NONE),)
_GUARD = (Meaning(kind=GUARD),)
_IMPORTERS = frozenset({
    'LazyLoader', 'LazyModule', '__import__', 'import_module', 'importorskip', 'lazy_import',
    'lazy_load', 'try_import'})
"""Last names of functions that return the module which a constant argument names."""
_SPECIAL = frozenset({'delattr', 'eval', 'exec', 'getattr', 'globals', 'locals', 'object', 'patch',
                     'setattr', 'vars'}) | _IMPORTERS
"""Last names of functions that `called` knows."""
_NAMES_IN_TEXT = TENSORFLOW | {'eval', 'exec', 'getattr', 'globals', 'locals', 'vars'}
"""Words of an executed text that may look up names of libraries, beside those bound here."""
_HARMLESS = frozenset('bool callable dir hasattr hash help id isinstance issubclass print reload '
                      'repr str type'.split())
"""Functions of Python that ask a module for no name, or that Python 3 does not have."""
_BUILTINS = frozenset({'__builtins__', '__import__', 'eval', 'exec', 'globals', 'locals'})
"""Names of Python that look up others by texts."""
_BY_TEXT = frozenset({f'builtins.{name}' for name in _BUILTINS}) | {
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
_OF_DATASETS = frozenset({'make_initializable_iterator', 'make_one_shot_iterator'})
"""Methods that only the datasets of TensorFlow 1 have, and no other class that scripts use."""
_ASKS_NOTHING = (  # Around a module that is only compared, tested or printed, or that is none.
    ast.AsyncFor, ast.AsyncFunctionDef, ast.ClassDef, ast.Compare, ast.Delete, ast.Expr, ast.For,
    ast.FormattedValue, ast.FunctionDef, ast.MatchClass, ast.MatchValue, ast.UnaryOp, ast.arg,
    ast.arguments, ast.comprehension)  # A default is followed.
_LOOK_UP = frozenset({
    'builtins.delattr', 'builtins.getattr', 'builtins.setattr', 'mock.patch.object',
    'unittest.mock.patch.object'})
_INNER = frozenset({
    '__delattr__', '__dict__', '__getattr__', '__getattribute__', '__loader__', '__setattr__',
    '__spec__'})
"""Attributes of a module that lead to its names by texts."""


def walk(state: State, *roots: ast.AST | None) -> None:
    """Records all uses in some expressions, whatever their depth is."""
    stack = [root for root in reversed(roots) if root is not None]
    while stack:
        node = stack.pop()
        special = _SPECIAL_NODES.get(type(node))
        if special is not None:
            special(state, node, stack)
            continue
        for field in reversed(FIELDS.get(type(node), node._fields)):
            value = getattr(node, field, None)
            if type(value) is list:
                stack += [one for one in reversed(value) if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                stack.append(value)


def walk_guarded(state: State, *nodes: ast.AST | None) -> None:
    """Records all uses in expressions that are perhaps not evaluated."""
    outer, state.block = state.block, Block(state.block, own=TESTED)
    walk(state, *nodes)
    state.block = outer


def bind_others(state: State, target: ast.AST) -> None:
    """Binds the names of a target to something unknown, and records what the target uses."""
    stack = [target]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            state.bind(node.id, OTHERS)
        elif isinstance(node, (ast.Tuple, ast.List)):
            stack += node.elts
        elif isinstance(node, ast.Starred):
            stack.append(node.value)
        elif isinstance(node, ast.Attribute):
            walk(state, node.value)
        elif isinstance(node, ast.Subscript):
            walk(state, node.value, node.slice)


def _name(state: State, node: ast.Name, stack: list[ast.AST]) -> None:
    if type(node.ctx) is not ast.Load:
        return
    meanings = state.bound(node.id)
    if meanings is None:
        meanings = state.from_stars(node.id) if state.stars else None
        if meanings is None:
            _use_builtin(state, node)
            return
        # It has no other place: the import names nothing.
        direct = tuple(one for one in meanings if not one.question or one.question.names)
        state.use_names(node, direct, '', node.id, NAME)
    if not is_unknown(meanings):
        state.meant[id(node)] = meanings
        note(state, node, meanings)
        if _is_called(state, node):
            _use_called(state, node, meanings)


def _is_called(state: State, node: ast.Name) -> bool:
    """Whether a name is called, or is a base class or decorator."""
    parent = state.parents.get(node)
    if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node in parent.decorator_list
    return isinstance(parent, ast.ClassDef) or isinstance(parent, ast.Call) and parent.func is node


def _use_called(state: State, node: ast.Name, meanings: Meanings) -> None:
    """Records a use where the program went on with `None` after the import of a name failed.

    The import was listed where it is written. The program fails here.
    """
    final = state.final(meanings, '')
    if any(one.choice == TRIED for one in final) and all(
            one.kind == NONE or one.question is not None and one.choice == TRIED for one in final):
        state.use_names(node, final, '', node.id, NAME)


def _use_builtin(state: State, node: ast.Name) -> None:
    question = Question('builtins', node.id)
    state.meant[id(node)] = (Meaning(question),)
    if node.id in PYTHON_2:
        state.use(node, question, node.id, NAME)
    if node.id in _BUILTINS:
        note(state, node, state.meant[id(node)])


def _attribute(state: State, node: ast.Attribute, stack: list[ast.AST]) -> None:
    base, names = chain_of(node)
    dotted = '.'.join(names)
    if node.attr in _OF_DATASETS:
        _of_dataset(state, node, f'{base.id if isinstance(base, ast.Name) else "(...)"}.{dotted}')
    if not _AROUND.isdisjoint(names):
        say_made(state, node, _IN_DICT)
    if isinstance(base, ast.Name):
        _looked_up(state, node, base, names)
        return
    stack.append(base)
    meanings = meaning_of(state, base) if isinstance(base, ast.Call) else OTHERS
    if not is_unknown(meanings):
        state.use_names(node, meanings, dotted, f'{written(base)}.{dotted}')
        note(state, node, meanings, dotted)


def _looked_up(state: State, node: ast.Attribute, base: ast.Name, names: list[str]) -> None:
    meanings = state.lookup(base.id)
    text = f'{base.id}.{".".join(names)}'
    if is_unknown(meanings):
        if base.id in TENSORFLOW:
            state.list_unknown(node, base.id, text)
        elif meanings is None:
            _use_builtin(state, base)
        return
    assert meanings is not None
    state.meant[id(base)] = meanings
    if base.id in TENSORFLOW and any(
            not is_examined(one.question.module) if one.question is not None
            else not one.kind and not one.file and one.choice != FALLBACK
            for one in state.final(tuple(  # A module of the project may be called so.
                each for each in meanings if each.names or not each.file), '')):
        state.list_unknown(node, base.id, text)
    if FLAGS in names:  # Its attributes are flags of the program.
        names = names[:names.index(FLAGS) + 1]
    note(state, node, meanings, '.'.join(names))
    if names[0] != '__class__' and names[-1] != '__dict__':
        state.use_names(node, meanings, '.'.join(names), text)


def _of_dataset(state: State, node: ast.Attribute, text: str) -> None:
    """Records a use of the class of datasets, if an object of unknown kind gets such a method.

    A script that calls one means TensorFlow 1, even if nothing else in it says so.
    """
    modules = {use.question.module for use in state.scanned.uses}
    module = next((one for one in ('tensorflow.compat.v1', 'tensorflow') if one in modules), '')
    if module and is_unknown(meaning_of(state, node.value)):
        state.use(node, Question(module, f'data.Dataset.{node.attr}'), text, ATTRIBUTE)


def _call(state: State, node: ast.Call, stack: list[ast.AST]) -> None:
    stack += reversed((node.func, *node.args, *node.keywords))
    last = last_name(node)
    if last in _SPECIAL:
        called(state, node, last)
        if last == 'getattr' or last in _IMPORTERS:
            note(state, node, meaning_of(state, node))
        elif last in ('globals', 'locals', 'vars'):
            note_dict(state, node, last)


def note(state: State, node: ast.expr, meanings: Meanings, names: str = '') -> None:
    """Notes names of libraries that stand where the scan does not follow them.

    `node` is a whole chain of names, or a call that gives a module; `meanings` are of its base.
    """
    if node not in state.parents:
        return
    parts = names.split('.')
    inner = next((place for place, name in enumerate(parts) if name in _INNER), len(parts))
    names = '.'.join(parts[:inner])
    note_text(state, node, meanings, names)
    if inner < len(parts) or not _is_followed(state, node):
        state.note_modules(node, written(node), state.final(meanings, names))


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
    last = last_name(call)
    path = path_of(state, call.func) if last in _HARMLESS or last in _SPECIAL else ''
    if path == f'builtins.{last}' and last in _HARMLESS:
        return True
    if path not in _LOOK_UP or node is not call.args[0]:
        return False
    name = text_of(call.args[1]) if len(call.args) > 1 else None
    return (name or '').isidentifier() or (  # Otherwise it is W202.
        last == 'getattr' and is_of_library(state, meaning_of(state, node)))


def _lambda(state: State, node: ast.Lambda, stack: list[ast.AST]) -> None:
    stack += [one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
    state.later(node)


def _comprehension(state: State, node: Any, stack: list[ast.AST]) -> None:
    walk(state, node.generators[0].iter)
    if isinstance(node, ast.GeneratorExp):
        state.later(node, state.caught)
    outer = state.scope
    state.scope = Scope(outer, state.block, state.order, is_comprehension=True)
    follow_comprehension(state, node)
    state.scope = outer


def follow_comprehension(state: State, node: Any) -> None:
    """Records the uses in a comprehension, in a scope of its own, except in what it begins with."""
    for number, one in enumerate(node.generators):
        if number:
            walk(state, one.iter)
        bind_others(state, one.target)
        walk(state, *one.ifs)
    walk(state, *((node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)))


def _named(state: State, node: ast.NamedExpr, stack: list[ast.AST]) -> None:
    walk(state, node.value)
    inner = state.scope
    while state.scope.is_comprehension and state.scope.parent is not None:
        state.scope = state.scope.parent  # Its name outlives the comprehension.
    state.bind(node.target.id, meaning_of(state, node.value))
    state.scope = inner


def _if_else(state: State, node: ast.IfExp, stack: list[ast.AST]) -> None:
    if is_guard(state, node.test):
        walk(state, node.test)
        walk_guarded(state, node.body, node.orelse)
    else:
        stack += (node.orelse, node.body, node.test)


def _bool(state: State, node: ast.BoolOp, stack: list[ast.AST]) -> None:
    if not state.block.is_guarded and is_guard(state, node):
        walk(state, node.values[0])
        walk_guarded(state, *node.values[1:])
    else:
        stack += reversed(node.values)


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
    last = last_name(node)
    texts = [text for one in node.args if (text := text_of(one)) is not None]
    if last not in _IMPORTERS or not texts:
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
        if isinstance(node, ast.Call) and last_name(node) in ('hasattr', 'dir') and node.args:
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
    """Records what a call looks up, beside what its arguments use; `last` is one of `_SPECIAL`."""
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
    elif last in _IMPORTERS:
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
            if state.scope is state.module and path not in state.scanned.patched:
                state.scanned.early.update(use for use in state.scanned.uses
                                           if f'{use.question.path}.'.startswith(f'{path}.'))
            state.scanned.patched.add(path)


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
            state.scanned.imports.setdefault(state.project.shown(found), state.places.of(node))
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
            last = last_name(parent) if isinstance(parent, ast.Call) else ''
            is_seen = last in _HARMLESS
            if isinstance(parent, ast.Call) and parent.func is node:  # A lambda is no text.
                is_seen = last in _SPECIAL and path.endswith(f'.{last}') or any(
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
        is_seen = last_name(parent) in _SPECIAL | _HARMLESS
    else:
        is_seen = (isinstance(parent, (ast.Compare, ast.For, ast.Starred, ast.comprehension))
                   or isinstance(parent, ast.keyword) and isinstance(above, ast.Call)
                   and last_name(above) == 'format'
                   or isinstance(parent, ast.BinOp) and isinstance(parent.left, ast.Constant)
                   or isinstance(parent, ast.Attribute) and parent.attr == 'update')
    if not is_seen:
        say_made(state, node, _IN_DICT)


_SPECIAL_NODES: dict[type, Callable[[State, Any, list[ast.AST]], object]] = {
    ast.Name: _name, ast.Attribute: _attribute, ast.Call: _call, ast.Lambda: _lambda,
    ast.ListComp: _comprehension, ast.SetComp: _comprehension, ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension, ast.NamedExpr: _named, ast.IfExp: _if_else,
    ast.BoolOp: _bool}
