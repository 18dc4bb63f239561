"""Follows expressions, and records which names of libraries they use.

A module of a library that is passed on, returned or kept may be asked for a name where nobody sees
it. The scan follows `tf.train.Saver`, imports, aliases such as `t = tf`, and defaults of arguments.
A name in any other place escapes: it is noted, also a module of the project that has modules of
libraries. Which of all these are modules is asked of the libraries.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .bindings import (
    ATTRIBUTE,
    FLAGS,
    NAME,
    NONE,
    OTHERS,
    Block,
    Meaning,
    Meanings,
    Scope,
    is_examined,
    is_unknown,
)
from .findings import FALLBACK, TESTED, TRIED, Question
from .name_resolution import (
    BUILTINS,
    HARMLESS,
    IMPORTERS,
    SPECIAL,
    called,
    is_guard,
    is_of_library,
    meaning_of,
    note_attributes,
    note_dict,
    note_text,
    path_of,
)
from .symbol_table import PYTHON_2, TENSORFLOW, State
from .syntax import FIELDS, called_name, chain_of, text_of, written

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
        special = _SPECIAL.get(type(node))
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


def walk_called(state: State, node: ast.expr) -> None:
    """Records the uses of an expression that is called, or is a base class or decorator.

    The import of a name was listed where it is written. Where a program goes on with `None` after
    it failed, the program fails here.
    """
    if not isinstance(node, ast.Name):
        walk(state, node)
        return
    final = state.final(_name(state, node, []) or (), '')
    if any(one.choice == TRIED for one in final) and all(
            one.kind == NONE or one.question is not None and one.choice == TRIED for one in final):
        state.use_names(node, final, '', node.id, NAME)


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


def _name(state: State, node: ast.Name, stack: list[ast.AST]) -> Meanings | None:
    if type(node.ctx) is not ast.Load:
        return None
    meanings = state.bound(node.id)
    if meanings is None:
        meanings = state.from_stars(node.id) if state.stars else None
        if meanings is None:
            _use_builtin(state, node)
            return None
        # It has no other place: the import names nothing.
        direct = tuple(one for one in meanings if not one.question or one.question.names)
        state.use_names(node, direct, '', node.id, NAME)
    if not is_unknown(meanings):
        state.meant[id(node)] = meanings
        note(state, node, meanings)
    return meanings


def _use_builtin(state: State, node: ast.Name) -> None:
    """Records a name that no scope binds."""
    question = Question('builtins', node.id)
    state.meant[id(node)] = (Meaning(question),)
    if node.id in PYTHON_2:
        state.use(node, question, node.id, NAME)
    if node.id in BUILTINS:
        note(state, node, state.meant[id(node)])


def _attribute(state: State, node: ast.Attribute, stack: list[ast.AST]) -> None:
    base, names = chain_of(node)
    dotted = '.'.join(names)
    if node.attr in _OF_DATASETS:
        _of_dataset(state, node, f'{base.id if isinstance(base, ast.Name) else "(...)"}.{dotted}')
    note_attributes(state, node, names)
    if isinstance(base, ast.Name):
        _looked_up(state, node, base, names)
        return
    stack.append(base)
    meanings = meaning_of(state, base) if isinstance(base, ast.Call) else OTHERS
    if not is_unknown(meanings):
        state.use_names(node, meanings, dotted, f'{written(base)}.{dotted}')
        note(state, node, meanings, dotted)


def _looked_up(state: State, node: ast.Attribute, base: ast.Name, names: list[str]) -> None:
    """Records that dotted names are looked up in a name."""
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
    modules = {use.question.module for use in state.uses}
    module = next((one for one in ('tensorflow.compat.v1', 'tensorflow') if one in modules), '')
    if module and not state.is_shallow and is_unknown(meaning_of(state, node.value)):
        state.use(node, Question(module, f'data.Dataset.{node.attr}'), text, ATTRIBUTE)


def _call(state: State, node: ast.Call, stack: list[ast.AST]) -> None:
    function = node.func
    stack += reversed(node.keywords)
    stack += reversed(node.args)
    if isinstance(function, ast.Name):
        last = function.id
        walk_called(state, function)
    else:
        last = function.attr if isinstance(function, ast.Attribute) else ''
        stack.append(function)
    if last in SPECIAL:
        called(state, node, last)
        if last == 'getattr' or last in IMPORTERS:
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
    last = called_name(call)
    path = path_of(state, call.func) if last in HARMLESS or last in SPECIAL else ''
    if path == f'builtins.{last}' and last in HARMLESS:
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


_SPECIAL: dict[type, Callable[[State, Any, list[ast.AST]], object]] = {
    ast.Name: _name, ast.Attribute: _attribute, ast.Call: _call, ast.Lambda: _lambda,
    ast.ListComp: _comprehension, ast.SetComp: _comprehension, ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension, ast.NamedExpr: _named, ast.IfExp: _if_else,
    ast.BoolOp: _bool}
