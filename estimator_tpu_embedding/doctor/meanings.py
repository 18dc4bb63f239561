"""States what a name of a file may mean, and under which conditions a place is reached."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .facts import Question

IMPORT, ATTRIBUTE, NAME = 'import', 'attribute', 'name'
"""Kinds of look-ups. An ImportError, AttributeError or NameError tells that one failed."""
ALL = frozenset({IMPORT, ATTRIBUTE, NAME})

EXAMINED = frozenset({'builtins', 'keras', 'numpy', 'tf_keras'}) | sys.stdlib_module_names
"""Packages whose attributes are looked up, beside those of TensorFlow."""


class Condition(NamedTuple):
    """When a place is reached, and what the program survives there.

    Attributes:
      only_if: questions that are all there, as in `facts.Use`.
      unless: groups of questions, as in `facts.Use`.
      caught: the kinds of look-ups that may fail there.
    """

    only_if: tuple[Question, ...] = ()
    unless: tuple[tuple[Question, ...], ...] = ()
    caught: frozenset[str] = frozenset()

    def also(self, other: Condition) -> Condition:
        """Returns the condition of a place that is reached where both hold."""
        if other is ALWAYS or other == self:
            return self
        if self is ALWAYS:
            return other
        return Condition(_joined(self.only_if, other.only_if), _joined(self.unless, other.unless),
                         self.caught | other.caught)


ALWAYS = Condition()
UNKNOWN = Condition(caught=ALL)
"""Of a place that is perhaps not reached, or never: what is missing there stops nothing."""


class Constant(NamedTuple):
    """A constant of the source.

    Attributes:
      value: what it is.
      is_version: whether it was computed from a version, so no other file changes it.
      with_tf1: what it is with `--tf1`, if it was computed from a version.
    """

    value: object
    is_version: bool = False
    with_tf1: object = None

    def __hash__(self) -> int:
        return hash(self.is_version)  # The value may be a list, such as the parts of a version.


class Meaning(NamedTuple):
    """One thing that a name may mean; anything but the following where all fields are empty.

    Attributes:
      question: a name of a library.
      file: a module of the project: its file or folder.
      names: dotted names in that module.
      constant: a constant.
      only_if: when the name means this, as in `facts.Use`.
      unless: when it does not.
    """

    question: Question | None = None
    file: str = ''
    names: str = ''
    constant: Constant | None = None
    only_if: tuple[Question, ...] = ()
    unless: tuple[tuple[Question, ...], ...] = ()

    def asks(self, question: Question) -> Meaning:
        """Returns the meaning of another name of a library under the same conditions."""
        return Meaning(question, only_if=self.only_if, unless=self.unless)

    def under(self, condition: Condition) -> Meaning:
        """Returns the same meaning under one more condition."""
        if not condition.only_if and not condition.unless:
            return self
        return self._replace(only_if=_joined(self.only_if, condition.only_if),
                             unless=_joined(self.unless, condition.unless))

    @property
    def condition(self) -> Condition:
        """When the name means this."""
        return Condition(self.only_if, self.unless)

    @property
    def is_known(self) -> bool:
        """Whether something is known of it, such as that it is no library."""
        return self.question is not None or self.constant is not None

    @property
    def is_none(self) -> bool:
        """Whether it is `None`, which has no names and cannot be called."""
        return self.constant is not None and self.constant.value is None


Meanings = tuple[Meaning, ...]
OBJECT = Meaning(constant=Constant(object()))
"""What a library other than TensorFlow made: no module, whatever its name is."""
OWN = Meaning(constant=Constant(object()))
"""A class of the file, or an object of it."""
OTHER = Meaning()
"""A value that is no name of a library, or of which nothing is known."""
OTHERS = (OTHER,)
FLAGS = 'FLAGS'
_MOST_CHARACTERS = 1000
"""The most characters of a name to which others are appended."""
_MOST = 16
"""The most meanings of one name that are kept apart."""


def union(first: Meanings, second: Meanings) -> Meanings:
    """Returns all meanings of both, each once."""
    if first == second:
        return first
    return tuple(dict.fromkeys((*first, *second)))[:_MOST]


Names = dict[str, Meanings]


def joined(branches: Iterable[tuple[Names, Condition]]) -> Names:
    """Returns what names mean after one of several branches, with the condition of each.

    Args:
      branches: names at the end of each branch, and when it is taken.
    """
    all_branches = list(branches)
    if len(all_branches) == 1:
        return all_branches[0][0]
    result: Names = {}
    for name in dict.fromkeys(name for names, _ in all_branches for name in names):
        given = [names.get(name) for names, _ in all_branches]
        if all(one is given[0] for one in given):
            result[name] = given[0] or ()
            continue
        common = set(given[0] or ()).intersection(*(one or () for one in given[1:]))
        result[name] = tuple(dict.fromkeys(
            meaning if meaning in common else meaning.under(condition)
            for one, (_, condition) in zip(given, all_branches) for meaning in one or ()))[:_MOST]
    return result


def below(question: Question, names: str) -> Question:
    """Returns the question about dotted names in something; after very many it stays the same."""
    if question.names.endswith(FLAGS) or len(question.names) > _MOST_CHARACTERS:
        return question  # Attributes of `FLAGS` are flags of the program.
    if not names:
        return question
    return Question(question.module, f'{question.names}.{names}' if question.names else names,
                    question.is_import)


def is_examined(module: str) -> bool:
    """Whether names in a module of a library are looked up, and not only its imports."""
    top = module.partition('.')[0]
    return top in EXAMINED or top.startswith('tensorflow')


class Exports(NamedTuple):
    """What a module of the project hands out.

    Attributes:
      names: what its names mean.
      stars: modules of which it imports all names.
      is_open: whether it may have more names than those, such as by `globals()` or `exec`.
      is_unknown: whether a part of it was not read, so what names mean is unknown.
    """

    names: Mapping[str, Meanings]
    stars: Meanings = ()
    is_open: bool = False
    is_unknown: bool = False


def _joined(first: tuple, second: tuple) -> tuple:
    if not first or not second:
        return first or second
    return tuple(dict.fromkeys((*first, *second)))
