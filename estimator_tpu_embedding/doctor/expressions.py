"""Follows expressions, and records which names of libraries they use."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import by_text, dataset_methods, escapes, guards
from .calls import SPECIAL, called
from .lookups import IMPORTERS, chain_of, meaning_of
from .meanings import FLAGS, NAME, OTHERS, Meanings, is_examined, union
from .state import TENSORFLOW, Scope, State

_FIELDS: dict[type, tuple[str, ...]] = {
    ast.BinOp: ('left', 'right'), ast.UnaryOp: ('operand',), ast.Compare: ('left', 'comparators'),
    ast.keyword: ('value',), ast.Subscript: ('value', 'slice'), ast.Starred: ('value',),
    ast.Dict: ('keys', 'values'), ast.Set: ('elts',), ast.List: ('elts',), ast.Tuple: ('elts',),
    ast.JoinedStr: ('values',), ast.FormattedValue: ('value', 'format_spec'),
    ast.Slice: ('lower', 'upper', 'step'), ast.Await: ('value',), ast.Yield: ('value',),
    ast.YieldFrom: ('value',), ast.Constant: ()}

_MOST_ITEMS = 20
"""The most items of a list that are told apart in a loop."""


def walk(state: State, *roots: ast.AST | None) -> None:
    """Records all uses in some expressions, whatever their depth is."""
    stack = [root for root in reversed(roots) if root is not None]
    while stack:
        node = stack.pop()
        special = _SPECIAL.get(type(node))
        if special is not None:
            special(state, node, stack)
            continue
        for field in reversed(_FIELDS.get(type(node), node._fields)):
            value = getattr(node, field)
            if type(value) is list:
                stack += [one for one in reversed(value) if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                stack.append(value)


def walk_called(state: State, node: ast.expr) -> None:
    """Records the uses of an expression that is called, or is a base class or decorator.

    The import of a name was listed where it is written. Where a program goes on with `None` after
    it failed, the program fails here.
    """
    if not isinstance(node, ast.Name):
        walk(state, node)
        return
    meanings = _name(state, node, [])
    if meanings is None or meanings is OTHERS or not any(
            one.only_if or one.file for one in meanings):
        return
    final = state.final(meanings, '')
    if all(one.is_none or one.question is not None and one.only_if for one in final):
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


def bind_items(state: State, target: ast.expr, items: ast.expr) -> None:
    """Binds the target of a loop to the items of a list, if they are written there."""
    bind_others(state, target)
    if isinstance(target, ast.Name) and isinstance(items, (ast.List, ast.Tuple)) and len(
            items.elts) <= _MOST_ITEMS:
        meanings: Meanings = ()
        for one in items.elts:
            meanings = union(meanings, meaning_of(state, one))
        if meanings and meanings != OTHERS:
            state.bind(target.id, meanings)


def _name(state: State, node: ast.Name, stack: list[ast.AST]) -> Meanings | None:
    if type(node.ctx) is not ast.Load:
        return None
    meanings = state.bound(node.id)
    if meanings is None:
        meanings = state.from_stars(node.id) if state.stars else None
        if meanings is None:
            state.use_builtin(node)
            if node.id in by_text.BUILTINS:
                escapes.note(state, node, state.meant[id(node)])
        elif meanings is not OTHERS:  # It has no other place: the import names nothing.
            direct = tuple(one for one in meanings if not one.question or one.question.names)
            state.use_names(node, direct, '', node.id, NAME)
    if meanings is not None and meanings is not OTHERS:
        state.meant[id(node)] = meanings
        escapes.note(state, node, meanings)
    return meanings


def _attribute(state: State, node: ast.Attribute, stack: list[ast.AST]) -> None:
    base, names = chain_of(node)
    if node.attr in dataset_methods.METHODS:
        dataset_methods.record(state, node)
    by_text.note_attributes(state, node, names)
    if isinstance(base, ast.Name):
        _looked_up(state, node, base, names)
        return
    stack.append(base)
    meanings = meaning_of(state, base) if isinstance(base, ast.Call) else OTHERS
    if meanings is not OTHERS:
        state.use_names(node, meanings, '.'.join(names), f'{_text(base)}.{".".join(names)}')
        escapes.note(state, node, meanings, '.'.join(names))
    elif name := next((one for one in names[:-1] if one in TENSORFLOW), ''):
        state.list_unknown(node, name, f'{_text(base)}.{".".join(names)}')


def _looked_up(state: State, node: ast.Attribute, base: ast.Name, names: list[str]) -> None:
    """Records that dotted names are looked up in a name."""
    meanings = state.lookup(base.id)
    if meanings is None or meanings is OTHERS:
        inner = TENSORFLOW.intersection(names[:-1]) - state.attributes
        if base.id in TENSORFLOW or inner:
            name = base.id if base.id in TENSORFLOW else min(inner)
            state.list_unknown(node, name, f'{base.id}.{".".join(names)}')
        elif meanings is None:
            state.use_builtin(base)
            if base.id in by_text.BUILTINS:
                escapes.note(state, base, state.meant[id(base)])
        return
    state.meant[id(base)] = meanings
    written = f'{base.id}.{".".join(names)}'
    if base.id in TENSORFLOW and not state.is_shallow and any(
            (one.question is not None and not is_examined(one.question.module)
             if one.is_known else not one.unless and not one.file)
            for one in state.final(tuple(  # A module of the project may be called so.
                each for each in meanings if each.names or not each.file), '')):
        state.list_unknown(node, base.id, written)
    if FLAGS in names:  # Its attributes are flags of the program.
        names = names[:names.index(FLAGS) + 1]
    escapes.note(state, node, meanings, '.'.join(names))
    if names[0] == '__class__' or names[-1] == '__dict__':
        return
    state.use_names(node, meanings, '.'.join(names), written)


def _text(node: ast.expr) -> str:
    return ast.unparse(node) if sum(1 for _ in ast.walk(node)) < 50 else '...'


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
            escapes.note(state, node, meaning_of(state, node))
        elif last in ('globals', 'locals', 'vars'):
            by_text.note_call(state, node, last)


def _lambda(state: State, node: ast.Lambda, stack: list[ast.AST]) -> None:
    stack += [one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
    state.later(node)


def _comprehension(state: State, node: Any, stack: list[ast.AST]) -> None:
    outer = state.scope
    if isinstance(node, ast.GeneratorExp):
        state.lazy.append(node)
    generators: list[ast.comprehension] = node.generators
    walk(state, generators[0].iter)
    state.scope = Scope(outer, is_comprehension=True)
    for number, one in enumerate(generators):
        if number:
            walk(state, one.iter)
        bind_items(state, one.target, one.iter)
        walk(state, *one.ifs)
    if isinstance(node, ast.DictComp):
        walk(state, node.key, node.value)
    else:
        walk(state, node.elt)
    state.scope = outer


def _named(state: State, node: ast.NamedExpr, stack: list[ast.AST]) -> None:
    walk(state, node.value)
    inner = state.scope
    while state.scope.is_comprehension and state.scope.parent is not None:
        state.scope = state.scope.parent  # Its name outlives the comprehension.
    state.bind(node.target.id, meaning_of(state, node.value))
    state.scope = inner


def _if_else(state: State, node: ast.IfExp, stack: list[ast.AST]) -> None:
    truth = guards.judge(state, node.test)
    if truth.is_trivial:
        stack += (node.orelse, node.body, node.test)
        return
    walk(state, node.test)
    before = state.condition
    for part, condition in ((node.body, truth.if_true), (node.orelse, truth.if_false)):
        state.condition = before.also(condition)
        walk(state, part)
    state.condition = before


def _bool(state: State, node: ast.BoolOp, stack: list[ast.AST]) -> None:
    before = state.condition
    for value in node.values:
        walk(state, value)
        truth = guards.judge(state, value)
        state.condition = state.condition.also(
            truth.if_true if isinstance(node.op, ast.And) else truth.if_false)
    state.condition = before


_SPECIAL: dict[type, Callable[[State, Any, list[ast.AST]], object]] = {
    ast.Name: _name, ast.Attribute: _attribute, ast.Call: _call, ast.Lambda: _lambda,
    ast.ListComp: _comprehension, ast.SetComp: _comprehension, ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension, ast.NamedExpr: _named, ast.IfExp: _if_else,
    ast.BoolOp: _bool}
