"""Says when the branches of a condition are taken, as far as the installed libraries decide that.

`try: import a as x / except ImportError: import b as x` gives `x` two meanings. The program takes
the first if `a` can be imported, and only then; the second has `unless=((a,),)`. So neither is a
false alarm, and a program that can import neither is found: what the handler imports is no longer
excused. `hasattr(tf, 'contrib')` decides in the same way.

A condition on a version is computed. It may differ with `--tf1`, where TensorFlow calls itself
1.15. Then `tensorflow.placeholder` decides, which is there with `--tf1` only. A condition on a
version that cannot be computed excuses both branches (`Use.is_guarded`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from . import versions
from .facts import Question
from .lookups import meaning_of, path_of, text_of
from .meanings import (
    ALL,
    ALWAYS,
    OTHERS,
    Condition,
    Constant,
    Meaning,
    Meanings,
    is_examined,
    union,
)
from .state import BRANCH, NEVER, State

DEAD = Condition(caught=ALL | {BRANCH, NEVER})
"""Of a branch that is never taken."""
_PERHAPS = Condition(caught=ALL | {BRANCH})
"""Of a branch that is perhaps not taken."""
_TF1 = Question('tensorflow', 'placeholder')
"""A name that TensorFlow has with `--tf1` only."""
_MOST_DEEP = 40
_MOST_NAMES = 200


class Truth(NamedTuple):
    """When the branches of a condition are taken.

    Attributes:
      if_true: of the branch for true.
      if_false: of the other branch.
      fixed: the one value that the condition has here, or `None`.
    """

    if_true: Condition = ALWAYS
    if_false: Condition = ALWAYS
    fixed: bool | None = None

    @property
    def is_trivial(self) -> bool:
        """Whether nothing is known."""
        return self is _ANY

    def inverted(self) -> Truth:
        """Returns the same for `not` the condition."""
        if self is _ANY:
            return self
        return Truth(self.if_false, self.if_true, None if self.fixed is None else not self.fixed)


_ANY = Truth()
_FIXED = {True: Truth(ALWAYS, DEAD, True), False: Truth(DEAD, ALWAYS, False)}
_EITHER = Truth(_PERHAPS, _PERHAPS)
_IS_TF1 = Truth(Condition(only_if=(_TF1,)), Condition(unless=((_TF1,),)))


def judge(state: State, test: ast.expr, depth: int = 0) -> Truth:
    """Returns when a condition is true."""
    if depth > _MOST_DEEP:
        return _ANY
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return judge(state, test.operand, depth + 1).inverted()
    if isinstance(test, ast.BoolOp):
        truths = [judge(state, one, depth + 1) for one in test.values]
        if all(one.is_trivial for one in truths):
            return _ANY
        if isinstance(test.op, ast.And):
            return _all(truths)
        return _all([one.inverted() for one in truths]).inverted()
    if isinstance(test, (ast.Name, ast.Attribute)):
        return _of_name(state, test)
    if isinstance(test, ast.Constant):
        return _FIXED[bool(test.value)]
    if isinstance(test, ast.Call):
        return _of_call(state, test)
    if isinstance(test, ast.Compare):
        return _of_comparison(state, test)
    return _ANY


def flag(state: State, node: ast.expr) -> Meanings:
    """Returns what a condition that is kept in a variable is, or `OTHERS`."""
    if not isinstance(node, (ast.Compare, ast.Call, ast.BoolOp, ast.UnaryOp)):
        return OTHERS
    truth = judge(state, node)
    if truth.fixed is not None:
        return (Meaning(constant=Constant(truth.fixed, True, truth.fixed)),)
    if not _decides(truth):
        return OTHERS
    return (Meaning(constant=Constant(True, True)).under(truth.if_true),
            Meaning(constant=Constant(False, True)).under(truth.if_false))


def value_of(state: State, node: ast.expr) -> Meanings:
    """Returns what a variable may be to which an expression is assigned."""
    if isinstance(node, ast.IfExp):
        truth = judge(state, node.test)
        if truth.fixed is not None:
            return value_of(state, node.body if truth.fixed else node.orelse)
        first, second = (tuple(one.under(condition) for one in meaning_of(state, part))
                         for part, condition in ((node.body, truth.if_true),
                                                 (node.orelse, truth.if_false)))
        return union(first, second)
    found = meaning_of(state, node)
    if found is not OTHERS:
        return found
    values = _values(state, node)
    return flag(state, node) if values is None else (
        Meaning(constant=Constant(values[0], True, values[1])),)


def _decides(truth: Truth) -> bool:
    return bool(truth.if_true.only_if or truth.if_true.unless) and bool(
        truth.if_false.only_if or truth.if_false.unless)


def _all(truths: list[Truth]) -> Truth:
    """Returns when all of some conditions are true."""
    if any(one.fixed is False for one in truths):
        return _FIXED[False]
    open_ones = [one for one in truths if one.fixed is None]
    if not open_ones:
        return _FIXED[True]
    if_true = ALWAYS
    for one in open_ones:
        if_true = if_true.also(one.if_true)
    if len(open_ones) == 1:
        return Truth(if_true, open_ones[0].if_false)
    if all(one.if_true.only_if and not one.if_true.unless and not one.if_true.caught
           for one in open_ones):
        return Truth(if_true, Condition(unless=(if_true.only_if,)))
    is_guess = all(one.if_false.caught for one in open_ones)
    return Truth(if_true, _PERHAPS if is_guess else ALWAYS)


def _of_name(state: State, node: ast.expr) -> Truth:
    if path_of(state, node) == 'typing.TYPE_CHECKING':
        return _FIXED[False]
    computed = _computed(state, node)
    if computed is not None:
        return computed
    return _when_one(state.final(meaning_of(state, node), ''), lambda one: (
        bool(one.constant.value) if one.constant is not None else True))


def _when_one(meanings: Meanings, is_true: Callable[[Meaning], bool]) -> Truth:
    """Returns when a name has one of those meanings for which `is_true` holds."""
    if not meanings or meanings is OTHERS:
        return _ANY
    groups: dict[bool, list[Meaning]] = {True: [], False: []}
    for one in meanings:
        groups[is_true(one)].append(one)
    if not groups[True] or not groups[False]:
        if all(one.constant is not None and one.constant.is_version for one in meanings):
            return _FIXED[bool(groups[True])]
        return _ANY
    first, second = (group[0].condition if len(group) == 1 else ALWAYS
                     for group in (groups[True], groups[False]))
    if first == ALWAYS and second.unless and len(second.unless) == 1:
        first = Condition(only_if=second.unless[0])
    if second == ALWAYS and first.only_if and not first.unless:
        second = Condition(unless=(first.only_if,))
    return Truth(first, second)


def _of_call(state: State, node: ast.Call) -> Truth:
    function = node.func
    if isinstance(function, ast.Name) and function.id == 'hasattr' and len(node.args) == 2:
        name = text_of(node.args[1])
        return _ANY if name is None else _there(state, node.args[0], name)
    if isinstance(function, ast.Name) and function.id in ('bool', 'any', 'all') and node.args:
        return judge(state, node.args[0])
    if path_of(state, function) in ('importlib.util.find_spec', 'pkgutil.find_loader',
                                    'importlib.find_loader') and node.args:
        name = text_of(node.args[0])
        if name is not None and state.project.find(state.file, name) is None:
            return _needs(Question(name))
    return _computed(state, node) or _ANY


def _there(state: State, node: ast.expr, names: str) -> Truth:
    """Returns when something has a name."""
    found = [one.question for one in state.final(meaning_of(state, node), names)]
    questions = [one for one in found if one is not None and is_examined(one.module)]
    if len(questions) == len(found) == 1:
        return _needs(questions[0])
    return _EITHER if questions else _ANY


def _needs(question: Question) -> Truth:
    return Truth(Condition(only_if=(question,)), Condition(unless=((question,),)))


def _of_comparison(state: State, node: ast.Compare) -> Truth:
    computed = _computed(state, node)
    if computed is not None:
        return computed
    sign, other = node.ops[0], node.comparators[0]
    if len(node.ops) != 1:
        return _ANY
    is_inverted = isinstance(sign, (ast.IsNot, ast.NotIn, ast.NotEq))
    if isinstance(sign, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) and isinstance(
            other, ast.Constant) and other.value is None:
        if isinstance(node.left, ast.Call):
            truth = _of_call(state, node.left).inverted()
        else:
            truth = _when_one(state.final(meaning_of(state, node.left), ''),
                              lambda one: one.is_none)
    elif isinstance(sign, (ast.In, ast.NotIn)) and isinstance(other, ast.Call) and isinstance(
            other.func, ast.Name) and other.func.id == 'dir' and other.args and (
            name := text_of(node.left)) is not None:
        truth = _there(state, other.args[0], name)
    else:
        return _ANY
    return truth.inverted() if is_inverted else truth


def _computed(state: State, node: ast.expr) -> Truth | None:
    """Returns the truth of a condition on a version, or `None` if it is none."""
    if not _mentions_version(state, node):
        return None
    values = _values(state, node)
    if values is None:
        return _EITHER
    own, with_tf1 = map(bool, values)
    if own == with_tf1:
        return _FIXED[own]
    return _IS_TF1 if with_tf1 else _IS_TF1.inverted()


def _values(state: State, node: ast.expr) -> tuple[object, object] | None:
    """Returns what is computed from a version, without and with `--tf1`, or `None`."""
    if not _mentions_version(state, node):
        return None
    return versions.evaluate(node, lambda one: path_of(state, one),
                             lambda one: _version_constant(state, one))


def _mentions_version(state: State, node: ast.expr) -> bool:
    if not state.has_versions:  # Another file may have computed one.
        left = node.left if isinstance(node, ast.Compare) else node
        return _version_constant(state, left) is not None
    paths = []
    for number, one in enumerate(ast.walk(node)):
        if number > _MOST_NAMES:
            return False
        if isinstance(one, ast.Name) and _version_constant(state, one) is not None:
            return True
        if isinstance(one, ast.Attribute) or isinstance(one, ast.Name):
            paths.append(path_of(state, one))
    return versions.mentions_version(paths)


def _version_constant(state: State, node: ast.expr) -> Constant | None:
    """Returns what a name is that was computed from a version, or `None`."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    found = state.final(meaning_of(state, node), '')
    constant = found[0].constant if len(found) == 1 else None
    return constant if constant is not None and constant.is_version else None
