"""Follows the statements of a file, branch by branch, and then its functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .calls import patched
from .expressions import (
    bind_items,
    bind_others,
    follow_comprehension,
    walk,
    walk_called,
    walk_guarded,
)
from .guards import FAILS, LEAVES, after_failure, caught_by, ending, is_never, needed, suppressed_by
from .imports import follow_import, follow_import_from
from .lookups import is_guard, meaning_of
from .meanings import (
    ALWAYS,
    GUARDED,
    OTHER,
    OTHERS,
    OWN,
    Binding,
    Block,
    Condition,
    Meaning,
    Scope,
    is_unknown,
)
from .nodes import chain_of, text_of
from .state import Lazy, State


def follow_file(state: State, tree: ast.Module) -> None:
    """Follows a whole file, or what stands at its top level if the state is shallow."""
    follow(state, tree.body)
    if state.is_shallow:
        return
    for name in state.globals:
        state.module.names.setdefault(name, [Binding(state.module.block, 0, OTHERS)])
    while state.waiting:
        _follow_lazy(state, state.waiting.popleft())
    for star, module in state.unknown_stars if state.needs_stars else ():
        state.say('W202', star, module, f'{module}.*', f'names come from {module}, and nobody here '
                  'can check which of them it has')


def follow(state: State, body: Sequence[ast.stmt], block: Block | None = None) -> None:
    """Follows statements, in a block of their own if one is given."""
    outer, state.block = state.block, block or state.block
    for node in body:
        special = _SPECIAL.get(type(node))
        if special is None:
            walk(state, node)
        else:
            special(state, node)
    state.block = outer


def _follow_lazy(state: State, lazy: Lazy) -> None:
    node: Any = lazy.node
    state.scope, state.block, state.caught = lazy.scope, Block(own=lazy.condition), lazy.caught
    if isinstance(node, ast.GeneratorExp):
        follow_comprehension(state, node)
        return
    arguments: ast.arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for one in (*positional, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if one is not None:
            state.bind(one.arg, OTHERS)
    defaults = zip(reversed(positional), reversed(arguments.defaults))
    for one, default in (*defaults, *zip(arguments.kwonlyargs, arguments.kw_defaults)):
        if default is not None and not isinstance(default, ast.Constant):
            inner, state.scope = state.scope, state.scope.parent or state.scope
            given = meaning_of(state, default)
            state.scope = inner
            if not is_unknown(given):
                state.bind(one.arg, (*given, OTHER))
    if isinstance(node, ast.Lambda):
        walk(state, node.body)
    else:
        follow(state, node.body)


def _function(state: State, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for decorator in node.decorator_list:
        walk_called(state, decorator)
    walk(state, *node.args.defaults, *node.args.kw_defaults)
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs,
                 node.args.vararg, node.args.kwarg)
    _annotations(state, node.returns, *(one.annotation for one in arguments if one is not None))
    state.bind(node.name, OTHERS)
    state.later(node)


def _annotations(state: State, *nodes: ast.expr | None) -> None:
    """Records uses in annotations, which `from __future__ import annotations` does not evaluate."""
    (walk_guarded if state.has_lazy_annotations else walk)(state, *nodes)


def _class(state: State, node: ast.ClassDef) -> None:
    for each in (*node.decorator_list, *node.bases):
        walk_called(state, each)
    walk(state, *node.keywords)
    outer = state.scope
    state.scope = Scope(outer, state.block, state.order, is_class=True)
    follow(state, node.body)
    for name, bindings in state.scope.names.items():
        state.note_attribute(name, bindings[-1].meanings)
    state.scope = outer
    state.bind(node.name, (Meaning(kind=OWN),))


def _outer(state: State, node: ast.Global | ast.Nonlocal) -> None:
    if state.scope is not state.module:
        state.scope.outer_names.update(node.names)


def _assign(state: State, node: ast.Assign) -> None:
    walk(state, node.value)
    for target in node.targets:
        _assign_to(state, target, node.value)


def _assign_to(state: State, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Name):
        state.bind(target.id, meaning_of(state, value))
        return
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(
            value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts) and not any(
            isinstance(one, ast.Starred) for one in (*target.elts, *value.elts)):
        meanings = [meaning_of(state, one) for one in value.elts]
        for one, meaning in zip(target.elts, meanings):
            if isinstance(one, ast.Name):
                state.bind(one.id, meaning)
            else:
                bind_others(state, one)
        return
    bind_others(state, target)
    if isinstance(target, ast.Attribute):
        state.note_attribute(target.attr, meaning_of(state, value))
        if any(one.is_module for one in meaning_of(state, chain_of(target)[0])):
            patched(state, target.value, target.attr)
    elif isinstance(target, ast.Subscript) and (name := text_of(target.slice)) is not None and any(
            one.question is not None and one.question.path == 'sys.modules'
            for one in meaning_of(state, target.value)):
        state.patched.add(name)


def _annotated(state: State, node: ast.AnnAssign) -> None:
    if state.scope is state.module or state.scope.is_class:
        _annotations(state, node.annotation)
    else:
        walk_guarded(state, node.annotation)  # Not evaluated in a function.
    if node.value is not None:
        walk(state, node.value)
        _assign_to(state, node.target, node.value)


def _augmented(state: State, node: ast.AugAssign) -> None:
    walk(state, node.value)
    if isinstance(node.target, ast.Attribute):
        walk(state, node.target)
    bind_others(state, node.target)


def _delete(state: State, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Attribute):
            walk(state, target)
        else:
            bind_others(state, target)


def _if(state: State, node: ast.If) -> None:
    """Follows `if`, all its `elif` and its `else`: after a test that is a guard, all is guarded."""
    outer, was_never, owner = state.block, state.is_never, object()
    own, is_left = ALWAYS, False
    block: Sequence[ast.stmt] = [node]
    while len(block) == 1 and isinstance(one := block[0], ast.If):
        state.block = outer if one is node else Block(outer, own=own)
        walk(state, one.test)
        is_dead = is_never(one.test)
        after = GUARDED if not is_dead and is_guard(state, one.test) else own
        state.is_never = was_never or is_dead
        follow(state, one.body, Block(outer, owner, GUARDED if is_dead else after))
        state.is_never = was_never
        is_left |= after is GUARDED and ending(one.body) == LEAVES
        own, block = after, one.orelse
    follow(state, block, Block(outer, owner, own))
    state.block = outer
    if is_left:
        outer.whole = outer.whole.also(GUARDED)  # Of the rest of the block.


def _loop(state: State, node: ast.For | ast.AsyncFor | ast.While) -> None:
    """Follows a loop, twice: what its body binds at its end is there when it runs again."""
    outer, was_again = state.block, state.is_again
    if not isinstance(node, ast.While):
        walk(state, node.iter)
    state.block = Block(outer)
    for _ in range(1 if was_again or not state.parents else 2):
        if isinstance(node, ast.While):
            walk(state, node.test)
        else:
            bind_items(state, node.target, node.iter)
        follow(state, node.body)
        state.is_again = True
    state.block, state.is_again = outer, was_again
    follow(state, node.orelse, Block(outer))


def _with(state: State, node: ast.With | ast.AsyncWith) -> None:
    outer, trying = state.caught, state.trying
    for item in node.items:
        walk(state, item.context_expr)
        if item.optional_vars is not None:
            bind_others(state, item.optional_vars)
        if caught := suppressed_by(item.context_expr):
            state.caught, state.trying = state.caught | caught, node
    follow(state, node.body)
    state.caught, state.trying = outer, trying


def _match(state: State, node: ast.Match) -> None:
    walk(state, node.subject)
    outer, owner = state.block, object()
    for case in node.cases:
        state.block = Block(outer, owner)
        for one in ast.walk(case.pattern):
            bound = getattr(one, 'name', None) or getattr(one, 'rest', None)
            if isinstance(bound, str):
                state.bind(bound, OTHERS)
            if isinstance(one, ast.MatchClass):
                walk(state, one.cls)
            elif isinstance(one, ast.MatchValue):
                walk(state, one.value)
        walk(state, case.guard)
        follow(state, case.body)
    state.block = outer


def _try(state: State, node: ast.Try) -> None:
    outer, caught, trying = state.block, state.caught, state.trying
    catches = [caught_by(handler.type) for handler in node.handlers]
    survived = frozenset[str]().union(*(one for one, handler in zip(catches, node.handlers)
                                        if ending(handler.body) != FAILS))
    mark, imports = len(state.uses), len(state.unknown)
    body = Block(outer)
    if any(catches):
        state.trying, state.caught = node, caught | survived
    follow(state, node.body, body)
    state.caught, state.trying = caught, trying
    is_sure = len(state.unknown) == imports
    if survived and (questions := needed(state, node, mark)):
        body.own = Condition(only_if=questions)
    follow(state, node.orelse, Block(outer, own=body.own))
    for handler, kinds in zip(node.handlers, catches):
        walk(state, handler.type)
        state.block = Block(outer, own=after_failure(state, node, kinds, mark, is_sure))
        if handler.name:
            state.bind(handler.name, OTHERS)
        follow(state, handler.body)
        state.block = outer
    follow(state, node.finalbody)


_SPECIAL: dict[type, Callable[[State, Any], None]] = {
    ast.Import: follow_import, ast.ImportFrom: follow_import_from,
    ast.FunctionDef: _function, ast.AsyncFunctionDef: _function, ast.ClassDef: _class,
    ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented,
    ast.Delete: _delete, ast.Global: _outer, ast.Nonlocal: _outer, ast.If: _if, ast.For: _loop,
    ast.AsyncFor: _loop, ast.While: _loop, ast.With: _with, ast.AsyncWith: _with,
    ast.Match: _match, ast.Try: _try}
if hasattr(ast, 'TryStar'):
    _SPECIAL[ast.TryStar] = _try
