"""Follows the statements of a file, branch by branch, and then its functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .expressions import (
    bind_others,
    follow_comprehension,
    is_guard,
    meaning_of,
    patched,
    walk,
    walk_guarded,
)
from .findings import CERTAIN, FALLBACK, TESTED, TRIED, Question
from .successors import made_by
from .symbol_table import (
    ALL,
    ATTRIBUTE,
    IMPORT,
    NAME,
    OTHER,
    OTHERS,
    OWN,
    Binding,
    Block,
    Meaning,
    Scope,
    State,
    is_examined,
    is_unknown,
)
from .syntax import chain_of, last_name, text_of

LEAVES, FAILS = 'leaves', 'fails'
"""How a block of statements ends that does not reach what follows: by `return` or `continue`, which
the program survives, or by an error or exit, which it does not.
"""
_CAUGHT = {
    'ImportError': {IMPORT}, 'ModuleNotFoundError': {IMPORT}, 'AttributeError': {ATTRIBUTE},
    'NameError': {NAME}, 'Exception': ALL, 'BaseException': ALL, 'StandardError': ALL}
_CATCHING_CALLS = frozenset({'suppress', 'assertRaises', 'assertRaisesRegex', 'assertRaisesRegexp',
                             'assertRaisesWithPredicateMatch', 'raises'})


def follow_file(state: State, tree: ast.Module) -> None:
    """Follows a whole file, or what stands at its top level if the state is shallow."""
    follow(state, tree.body)
    if state.is_shallow:
        return
    for name in state.globals:
        state.module.names.setdefault(name, [Binding(state.module.block, 0, OTHERS)])
    for node, scope, block, caught in state.waiting:  # It grows.
        state.scope, state.block, state.caught = scope, block, caught
        _follow_lazy(state, node)
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


def _follow_lazy(state: State, node: Any) -> None:
    if isinstance(node, ast.GeneratorExp):
        follow_comprehension(state, node)
        return
    arguments: ast.arguments = node.args
    for one in _parameters(arguments):
        state.bind(one.arg, OTHERS)
    defaults = zip(reversed([*arguments.posonlyargs, *arguments.args]),
                   reversed(arguments.defaults))
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


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    return [one for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
                            arguments.vararg, arguments.kwarg) if one is not None]


def _function(state: State, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    walk(state, *node.decorator_list, *node.args.defaults, *node.args.kw_defaults)
    _annotations(state, node.returns, *(one.annotation for one in _parameters(node.args)))
    state.bind(node.name, OTHERS)
    state.later(node)


def _annotations(state: State, *nodes: ast.expr | None) -> None:
    """Records uses in annotations, which `from __future__ import annotations` does not evaluate."""
    (walk_guarded if state.has_lazy_annotations else walk)(state, *nodes)


def _class(state: State, node: ast.ClassDef) -> None:
    walk(state, *node.decorator_list, *node.bases, *node.keywords)
    outer = state.scope
    state.scope = Scope(outer, state.block, state.order, is_class=True)
    follow(state, node.body)
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
        for one, meanings in zip(target.elts, [meaning_of(state, one) for one in value.elts]):
            if isinstance(one, ast.Name):
                state.bind(one.id, meanings)
            else:
                bind_others(state, one)
        return
    bind_others(state, target)
    if isinstance(target, ast.Attribute):
        if any(one.is_module for one in meaning_of(state, chain_of(target)[0])):
            patched(state, target.value, target.attr)
    elif isinstance(target, ast.Subscript) and (name := text_of(target.slice)) is not None and any(
            one.question is not None and one.question.path == 'sys.modules'
            for one in meaning_of(state, target.value)):
        state.scanned.patched.add(name)


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
    outer, owner = state.block, object()
    own, is_left = CERTAIN, False
    block: Sequence[ast.stmt] = [node]
    while len(block) == 1 and isinstance(one := block[0], ast.If):
        state.block = outer if one is node else Block(outer, own=own)
        walk(state, one.test)
        is_dead = isinstance(one.test, ast.Constant) and not one.test.value or isinstance(
            one.test, (ast.Name, ast.Attribute)) and last_name(one.test) == 'TYPE_CHECKING'
        after = TESTED if not is_dead and is_guard(state, one.test) else own
        follow(state, one.body, Block(outer, owner, TESTED if is_dead else after))
        is_left |= after == TESTED and _ending(one.body) == LEAVES
        own, block = after, one.orelse
    follow(state, block, Block(outer, owner, own))
    state.block = outer
    if is_left:
        outer.is_guarded = True  # The rest of the block.


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
            bind_others(state, node.target)
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
        call = item.context_expr
        if isinstance(call, ast.Call) and last_name(call) in _CATCHING_CALLS and (
                caught := frozenset[str]().union(*map(_caught_by, call.args))):
            state.caught = state.caught | caught
            state.trying = (*state.trying, (_attempt(state, node), caught))
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
    """Follows a `try`; its handlers are reached if its body lacks something, and only then."""
    outer, caught, trying = state.block, state.caught, state.trying
    catches = [_caught_by(handler.type) for handler in node.handlers]
    survived = frozenset[str]().union(*(one for one, handler in zip(catches, node.handlers)
                                        if _ending(handler.body) != FAILS))
    number, mark, body = _attempt(state, node), len(state.scanned.uses), Block(outer)
    state.caught = caught | survived
    state.trying = (*trying, (number, frozenset[str]().union(*catches)))
    follow(state, node.body, body)
    state.caught, state.trying = caught, trying
    is_tried = any(use.attempt == number for use in state.scanned.uses[mark:])
    body.own = TRIED if is_tried and survived else CERTAIN
    follow(state, node.orelse, Block(
        outer, own=body.own, fallbacks=(-number,) if is_tried else ()))
    for handler, kinds in zip(node.handlers, catches):
        walk(state, handler.type)
        state.block = Block(outer)
        if kinds and is_tried and (kinds != ALL or _is_sure(node.body)):
            state.block = Block(outer, own=FALLBACK, fallbacks=(number,))
        elif kinds and all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in node.body):
            state.block = Block(outer, own=TESTED)  # The body imports what the project has.
        if handler.name:
            state.bind(handler.name, OTHERS)
        follow(state, handler.body)
        state.block = outer
    follow(state, node.finalbody)


def _attempt(state: State, node: ast.AST) -> int:
    """Returns the number of a `try`, which is the same if its loop is followed again."""
    return state.attempts.setdefault(node, len(state.attempts) + 1)


def _is_sure(body: Sequence[ast.stmt]) -> bool:
    """Whether statements raise no error but for a name that is missing."""
    return all(isinstance(one, (ast.Import, ast.ImportFrom, ast.Pass)) or isinstance(
        one, (ast.Assign, ast.Expr)) and isinstance(
            one.value, (ast.Name, ast.Attribute, ast.Constant)) for one in body)


def _caught_by(node: ast.expr | None) -> frozenset[str]:
    """Returns the kinds of look-ups whose failure a handler of that type catches."""
    if node is None:
        return ALL
    types = node.elts if isinstance(node, ast.Tuple) else [node]
    return frozenset().union(*(_CAUGHT.get(last_name(one), frozenset()) for one in types))


def _ending(body: Sequence[ast.stmt]) -> str:
    """Returns how a block ends: `LEAVES`, `FAILS`, or `''` if it goes on."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Continue, ast.Break)):
            return LEAVES
        if isinstance(node, ast.Raise):
            return LEAVES if 'Skip' in last_name(node.exc) else FAILS
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (
                last_name(node.value) in ('exit', '_exit', 'quit', 'abort')):
            return FAILS
    return ''


def _import(state: State, node: ast.Import) -> None:
    for alias in node.names:
        top = alias.name.partition('.')[0]
        found = state.project.find(state.file, alias.name)
        if found is None:
            state.use(alias, Question(alias.name), alias.name, IMPORT)
            _bind(state, alias.asname or top, Question(alias.name if alias.asname else top))
            parts = alias.name.split('.') if not alias.asname else []
            state.dotted.update('.'.join(parts[:end]) for end in range(2, len(parts) + 1))
        elif found:
            _note_base(state, 0, alias.name)
            _note_import(state, alias, found)
            whole = found if alias.asname else state.project.find(state.file, top) or found
            state.bind(alias.asname or top, (Meaning(file=whole),))
        else:
            _say_missing(state, alias, alias.name)
            state.bind(alias.asname or top, OTHERS)


def _import_from(state: State, node: ast.ImportFrom) -> None:
    module = node.module or ''
    if module == '__future__':
        state.has_lazy_annotations |= any(one.name == 'annotations' for one in node.names)
    if node.level:
        found: str | None = state.project.relative(state.file, node.level, module)
    else:
        found = state.project.find(state.file, module)
    if found is None:
        _from_library(state, node, module)
    elif found:
        _note_base(state, node.level, module)
        if module or node.names[0].name == '*':
            _note_import(state, node, found)
        for alias in node.names:
            _from_project(state, node, alias, found)
    else:
        _say_missing(state, node, '.' * node.level + module)
        for alias in node.names:
            if alias.name == '*':
                _star(state, Meaning())
            else:
                state.bind(alias.asname or alias.name, OTHERS)


def _from_library(state: State, node: ast.ImportFrom, module: str) -> None:
    for alias in node.names:
        if alias.name == '*':
            state.use(node, Question(module), f'{module}.*', IMPORT)
            _star(state, Meaning(Question(module)))
            if not is_examined(module):
                state.unknown_stars.append((node, module))
            continue
        question = Question(module, alias.name, True)
        state.use(alias, question, alias.name, IMPORT)
        _bind(state, alias.asname or alias.name, question)


def _star(state: State, star: Meaning) -> None:
    """Adds `from a import *`, which may replace names that are bound already."""
    state.order += 1
    state.stars.append(Binding(state.block, state.order, (star,)))


def _bind(state: State, name: str, question: Question) -> None:
    """Binds a name of a library, of which the last use is the import."""
    state.bind(name, (Meaning(question),))
    if not state.is_followed(name):
        state.scanned.escapes[state.scanned.uses[-1]] = None


def _from_project(state: State, node: ast.ImportFrom, alias: ast.alias, file: str) -> None:
    module = '.' * node.level + (node.module or '')
    if alias.name == '*':
        _star(state, Meaning(file=file))
        if not state.is_shallow and state.project.exports(file).is_unknown:
            state.say('W202', node, module, f'{module}.*',
                      'a part of this module is unknown, and so are the names that come from it')
        return
    submodule = state.project.submodule(file, alias.name)
    is_own = bool(submodule) and file == state.file  # A package that imports its module.
    meaning = Meaning(file=submodule) if is_own else Meaning(file=file, names=alias.name)
    if submodule:
        _note_import(state, alias, submodule)
    if not submodule and not state.is_shallow and state.project.resolve(meaning) is None:
        state.say('E112', alias, f'{module}.{alias.name}', alias.name,
                  f'the module {module} of the project has no {alias.name}'
                  + made_by(alias.name))
    state.bind(alias.asname or alias.name, (meaning,))


def _note_import(state: State, node: ast.AST, file: str) -> None:
    for one in (*state.project.packages(file), file):  # These are imported before it.
        state.scanned.imports.setdefault(state.project.shown(one), state.places.of(node))


def _note_base(state: State, level: int, module: str) -> None:
    """Keeps the folder from which an import of the project asks to be run."""
    state.scanned.base = state.scanned.base or state.project.base_of(state.file, level, module)


def _say_missing(state: State, node: ast.AST, module: str) -> None:
    state.say('E112', node, module, module, f'the project has no module {module}{made_by(module)}')


_SPECIAL: dict[type, Callable[[State, Any], None]] = {
    ast.Import: _import, ast.ImportFrom: _import_from,
    ast.FunctionDef: _function, ast.AsyncFunctionDef: _function, ast.ClassDef: _class,
    ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented,
    ast.Delete: _delete, ast.Global: _outer, ast.Nonlocal: _outer, ast.If: _if, ast.For: _loop,
    ast.AsyncFor: _loop, ast.While: _loop, ast.With: _with, ast.AsyncWith: _with,
    ast.Match: _match, ast.Try: _try, ast.TryStar: _try}
