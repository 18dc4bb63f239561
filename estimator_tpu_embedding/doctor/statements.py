"""Follows the statements of a file, branch by branch, and then its functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .assignments import annotated, assign, augmented, delete, follow_annotations
from .expressions import bind_items, bind_others, walk, walk_called
from .guards import judge
from .imports import follow_import, follow_import_from
from .lookups import meaning_of
from .meanings import ALWAYS, OTHER, OTHERS, OWN, Condition, joined
from .meanings import Names as Bound
from .state import Scope, State
from .tries import LEAVES, ending_of, follow_try, follow_with


def follow_file(state: State, tree: ast.Module) -> None:
    """Follows a whole file, or what stands at its top level if the state is shallow."""
    follow(state, tree.body)
    if state.is_shallow:
        return
    for name in state.globals:
        state.module.names.setdefault(name, OTHERS)
    while state.waiting:
        _follow_function(state, *state.waiting.popleft())
    for star, module in state.unknown_stars if state.needs_stars else ():
        state.condition = ALWAYS
        state.say('W202', star, module, f'{module}.*', f'names come from {module}, and nobody here '
                  'can check which of them it has')


def follow(state: State, body: Sequence[ast.stmt]) -> str:
    """Follows a block, and returns how it ends: `LEAVES`, `FAILS`, or `''` if it goes on."""
    condition = state.condition
    ending = ''
    for node in body:
        state.here = node
        special = _SPECIAL.get(type(node))
        if special is None:
            walk(state, node)
            result = ending_of(node)
        else:
            result = special(state, node) or ''
        ending = ending or result
    state.condition = condition
    return ending


def _follow_function(state: State, node: Any, parent: Scope, condition: Condition) -> None:
    while parent.is_class and parent.parent is not None:
        parent = parent.parent  # A method does not see the names of its class.
    scope = state.scope = Scope(parent)
    state.condition, state.depth = condition, 0
    arguments: ast.arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for one in (*positional, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if one is not None:
            scope.names[one.arg] = OTHERS
    defaults = zip(reversed(positional), reversed(arguments.defaults))
    for one, default in (*defaults, *zip(arguments.kwonlyargs, arguments.kw_defaults)):
        if default is not None and not isinstance(default, ast.Constant):
            state.scope = parent
            given = meaning_of(state, default)
            state.scope = scope
            if given is not OTHERS:
                scope.names[one.arg] = (*given, OTHER)
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
    follow_annotations(state, node.returns,
                       *(one.annotation for one in arguments if one is not None))
    state.bind(node.name, OTHERS)
    state.later(node)


def _class(state: State, node: ast.ClassDef) -> None:
    for each in (*node.decorator_list, *node.bases):
        walk_called(state, each)
    walk(state, *node.keywords)
    outer = state.scope
    state.scope = Scope(outer, is_class=True)
    follow(state, node.body)
    for name, meanings in state.scope.names.items():
        state.note_attribute(name, meanings)
    state.scope = outer
    state.bind(node.name, (OWN,))


def _outer(state: State, node: ast.Global | ast.Nonlocal) -> None:
    if state.scope is not state.module:
        state.scope.outer_names.update(node.names)


def _if(state: State, node: ast.If) -> str:
    """Follows `if`, all its `elif` and its `else`."""
    before = rest = state.condition
    names = state.scope.names
    branches: list[tuple[Bound, Condition, Condition]] = []  # Names, own and whole condition.
    ends: list[str] = []
    own_rest, is_over = ALWAYS, False
    block: Sequence[ast.stmt] = [node]
    while len(block) == 1 and isinstance(one := block[0], ast.If):
        state.scope.names, state.condition = names, rest
        walk(state, one.test)
        truth = judge(state, one.test)
        ends.append(_branch(state, one.body, rest.also(truth.if_true)))
        if not ends[-1] and truth.fixed is not False and not is_over:
            branches.append((state.scope.names, own_rest.also(truth.if_true),
                             rest.also(truth.if_true)))
        if truth.fixed is False:
            ends.pop()
        is_over = is_over or truth.fixed is True
        rest, own_rest = rest.also(truth.if_false), own_rest.also(truth.if_false)
        block, state.scope.names = one.orelse, names
    ends.append(_branch(state, block, rest))
    if is_over:
        ends.pop()
    elif not ends[-1]:
        branches.append((state.scope.names, own_rest, rest))
    state.condition = before
    if not branches:
        state.scope.names = names
        return LEAVES if LEAVES in ends else ends[0]
    state.scope.names = joined((bound, own) for bound, own, _ in branches)
    if len(branches) == 1 and branches[0][2].caught == before.caught:
        state.condition = branches[0][2]  # Of the rest of the block: the others do not reach it.
    return ''


def _branch(state: State, body: Sequence[ast.stmt], condition: Condition) -> str:
    state.scope.names = dict(state.scope.names)
    state.condition = condition
    return follow(state, body)


def _loop(state: State, node: ast.For | ast.AsyncFor | ast.While) -> str:
    before = state.condition
    truth_true = truth_false = ALWAYS
    if isinstance(node, ast.While):
        walk(state, node.test)
        truth = judge(state, node.test)
        truth_true, truth_false = truth.if_true, truth.if_false
    else:
        walk(state, node.iter)
    names = state.scope.names
    state.scope.names = dict(names)
    if not isinstance(node, ast.While):
        bind_items(state, node.target, node.iter)
    state.condition = before.also(truth_true)
    follow(state, node.body)
    state.here = node
    for name, after in state.scope.names.items() if state.parents else ():
        if after is not names.get(name):  # The body is followed once, and runs again.
            state.note_other(name, after, names.get(name, ()), lambda: _is_used_early(node, name))
    state.scope.names = joined([(names, ALWAYS), (state.scope.names, ALWAYS)])
    state.condition = before.also(truth_false) if node.orelse else before
    follow(state, node.orelse)
    state.condition = before
    return ''


def _is_used_early(loop: ast.AST, name: str) -> bool:
    """Whether a loop uses a name before it binds it again."""
    places = sorted(
        (node.lineno, node.col_offset, isinstance(getattr(node, 'ctx', None), ast.Load))
        for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == name
        or isinstance(node, ast.alias) and name in (node.asname, node.name.partition('.')[0]))
    are_uses = [is_use for _, _, is_use in places]
    return True in are_uses and False in are_uses[are_uses.index(True):]


def _with(state: State, node: ast.With | ast.AsyncWith) -> str:
    before = state.condition
    caught = follow_with(state, node)
    for item in node.items:
        if item.optional_vars is not None:
            bind_others(state, item.optional_vars)
    state.condition = before.also(caught)
    ending = follow(state, node.body)
    state.condition = before
    return '' if caught.caught else ending


def _match(state: State, node: ast.Match) -> str:
    walk(state, node.subject)
    names = state.scope.names
    branches: list[tuple[Bound, Condition]] = [(names, ALWAYS)]
    for case in node.cases:
        state.scope.names = dict(names)
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
        branches.append((state.scope.names, ALWAYS))
    state.scope.names = joined(branches)
    return ''


_SPECIAL: dict[type, Callable[[State, Any], str | None]] = {
    ast.Import: follow_import, ast.ImportFrom: follow_import_from,
    ast.FunctionDef: _function, ast.AsyncFunctionDef: _function, ast.ClassDef: _class,
    ast.Assign: assign, ast.AnnAssign: annotated, ast.AugAssign: augmented,
    ast.Delete: delete, ast.Global: _outer, ast.Nonlocal: _outer, ast.If: _if, ast.For: _loop,
    ast.AsyncFor: _loop, ast.While: _loop, ast.With: _with, ast.AsyncWith: _with,
    ast.Match: _match, ast.Try: lambda state, node: follow_try(state, node, follow)}
if hasattr(ast, 'TryStar'):
    _SPECIAL[ast.TryStar] = lambda state, node: follow_try(state, node, follow)
