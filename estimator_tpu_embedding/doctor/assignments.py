"""Follows assignments: what names, attributes of `self` and names of libraries become."""

from __future__ import annotations

import ast

from .calls import assigned
from .expressions import bind_others, walk
from .guards import DEAD, value_of
from .lookups import chain_of, meaning_of, text_of
from .meanings import OTHERS, Meanings
from .state import State


def follow_annotations(state: State, *nodes: ast.expr | None) -> None:
    """Records uses in annotations, which `from __future__ import annotations` does not evaluate."""
    before = state.condition
    if state.has_lazy_annotations:
        state.condition = before.also(DEAD)
    walk(state, *nodes)
    state.condition = before


def assign(state: State, node: ast.Assign) -> None:
    """Follows `a = b = value`."""
    walk(state, node.value)
    for target in node.targets:
        _assign_to(state, target, node.value)


def _assign_to(state: State, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Name):
        state.bind(target.id, value_of(state, value))
        return
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(
            value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts) and not any(
            isinstance(one, ast.Starred) for one in (*target.elts, *value.elts)):
        meanings = [value_of(state, one) for one in value.elts]
        for one, meaning in zip(target.elts, meanings):
            if isinstance(one, ast.Name):
                state.bind(one.id, meaning)
            else:
                bind_others(state, one)
        return
    bind_others(state, target)
    if isinstance(target, ast.Attribute):
        _set_attribute(state, target, value_of(state, value))
    elif isinstance(target, ast.Subscript) and (name := text_of(target.slice)) is not None and any(
            one.question is not None and one.question.path == 'sys.modules'
            for one in meaning_of(state, target.value)):
        state.patched.add(name)


def _set_attribute(state: State, target: ast.Attribute, value: Meanings) -> None:
    base, names = chain_of(target)
    meanings = meaning_of(state, base)
    if meanings is OTHERS:
        return
    if any(one.question or one.file for one in meanings):
        assigned(state, target)
    for one in meanings:
        if one.owner is not None and len(names) == 1 and value is not OTHERS:
            one.owner.add(names[0], value)


def annotated(state: State, node: ast.AnnAssign) -> None:
    """Follows `a: type = value`."""
    before = state.condition
    if state.scope is not state.module and not state.scope.is_class:
        state.condition = before.also(DEAD)  # Not evaluated in a function.
    follow_annotations(state, node.annotation)
    state.condition = before
    if node.value is not None:
        walk(state, node.value)
        _assign_to(state, node.target, node.value)


def augmented(state: State, node: ast.AugAssign) -> None:
    """Follows `a += value`."""
    walk(state, node.value)
    bind_others(state, node.target)


def delete(state: State, node: ast.Delete) -> None:
    """Follows `del a`."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            state.scope.names.pop(target.id, None)
        else:
            walk(state, getattr(target, 'value', None), getattr(target, 'slice', None))
