"""Follows assignments: what names, attributes of `self` and names of libraries become."""

from __future__ import annotations

import ast

from .calls import assigned
from .expressions import bind_others, walk
from .guards import DEAD, value_of
from .lookups import chain_of, meaning_of, text_of
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
        state.note_attribute(target.attr, value_of(state, value))
        if any(one.question or one.file for one in meaning_of(state, chain_of(target)[0])):
            assigned(state, target)
    elif isinstance(target, ast.Subscript) and (name := text_of(target.slice)) is not None and any(
            one.question is not None and one.question.path == 'sys.modules'
            for one in meaning_of(state, target.value)):
        state.patched.add(name)


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
    if isinstance(node.target, ast.Attribute):
        walk(state, node.target)
    bind_others(state, node.target)


def delete(state: State, node: ast.Delete) -> None:
    """Follows `del a`."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            state.note_end(target.id, ())
            state.scope.names.pop(target.id, None)
        elif isinstance(target, ast.Attribute):
            walk(state, target)
        else:
            walk(state, getattr(target, 'value', None), getattr(target, 'slice', None))
