"""States what a name of a file may mean, where it was bound, and how that was chosen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .findings import CERTAIN, FALLBACK, TESTED, TRIED, Question

IMPORT, ATTRIBUTE, NAME = 'import', 'attribute', 'name'
"""Kinds of look-ups. An ImportError, AttributeError or NameError tells that one failed."""
ALL = frozenset({IMPORT, ATTRIBUTE, NAME})

EXAMINED = frozenset({'builtins', 'keras', 'numpy', 'tf_keras'}) | sys.stdlib_module_names
"""Packages whose attributes are looked up, beside those of TensorFlow."""


class Meaning(NamedTuple):
    """One thing that a name may mean; anything but the following where all fields are empty.

    Attributes:
      question: a name of a library.
      file: a module of the project: its file or folder.
      names: dotted names in that module.
      kind: what is known of a value that is no library: one of the constants below.
      choice, chosen: as in `findings.Use`.
    """

    question: Question | None = None
    file: str = ''
    names: str = ''
    kind: str = ''
    choice: int = CERTAIN
    chosen: str = ''

    def under(self, choice: int) -> Meaning:
        """Returns the same meaning, also chosen in some way."""
        if choice <= self.choice:
            return self
        path = self.question.path if self.question is not None else ''
        return self._replace(choice=choice, chosen=self.chosen or path)

    def inside(self, names: str) -> Meaning:
        """Returns what dotted names in it mean; those of other files stay unresolved."""
        if not names:
            return self
        if self.question is not None:
            return self._replace(question=below(self.question, names))
        if self.file:
            return self._replace(names=f'{self.names}.{names}' if self.names else names)
        return self if self.kind == NONE else OTHER

    @property
    def is_module(self) -> bool:
        """Whether it may be a module: of a library or of the project."""
        return self.question is not None or bool(self.file)


Meanings = tuple[Meaning, ...]
NONE, OWN, GUARD = 'None', 'own', 'guard'
"""Kinds: `None`; a class of the file or an object of it; what `expressions.is_guard` gives."""
OTHER = Meaning()
"""A value that is no name of a library, or of which nothing is known."""
OTHERS = (OTHER,)
FLAGS = 'FLAGS'
_MOST_CHARACTERS = 1000
"""The most characters of a name to which others are appended."""
_MOST = 16
"""The most meanings of one name that are kept apart."""


def union(parts: Iterable[Meanings]) -> Meanings:
    """Returns all meanings of several, each once."""
    return tuple(dict.fromkeys(one for part in parts for one in part))[:_MOST]


def is_unknown(meanings: Meanings | None) -> bool:
    """Whether nothing is known of a name."""
    return not meanings or all(not one.is_module and not one.kind for one in meanings)


def below(question: Question, names: str) -> Question:
    """Returns the question about dotted names in something; after very many it stays the same."""
    if not names or question.names.endswith(FLAGS) or len(question.names) > _MOST_CHARACTERS:
        return question  # Attributes of `FLAGS` are flags of the program.
    names = f'{question.names}.{names}' if question.names else names
    return Question(question.module, names, question.is_import)


def is_examined(module: str) -> bool:
    """Whether names in a module of a library are looked up, and not only its imports."""
    top = module.partition('.')[0]
    return top in EXAMINED or top.startswith('tensorflow')


class Block:
    """Statements that run one after the other: those of a scope, or a branch in it.

    Attributes:
      owner: of all branches of one statement, since no run of it takes two of them.
      own: how it is chosen, among the branches of its statement.
      is_guarded: whether a test of versions or names decides if its present statement is reached.
      around: it, all blocks around it, and their owners.
    """

    __slots__ = ('parent', 'owner', 'own', 'is_guarded', 'fallbacks', 'around')

    def __init__(self, parent: Block | None = None, owner: object = None, own: int = CERTAIN,
                 fallbacks: tuple[int, ...] = ()):
        self.parent, self.owner, self.own = parent, owner, own
        self.is_guarded: bool = own == TESTED or parent is not None and parent.is_guarded
        self.fallbacks: tuple[int, ...] = (
            fallbacks if parent is None else parent.fallbacks + fallbacks)
        self.around: frozenset[object] = frozenset({self, owner} if owner else {self}) | (
            parent.around if parent is not None else frozenset())

    def seen_from(self, place: Block) -> int | None:
        """Returns how a place chose that it ran; `None` if both are branches of one statement."""
        choice, block, inner = CERTAIN, self, self
        while block not in place.around and block.parent is not None:
            choice, inner, block = max(choice, block.own), block, block.parent
        return None if inner is not block and inner.owner in place.around else choice


_OTHERWISE = {TRIED: FALLBACK, TESTED: TESTED}
"""How a name keeps its meaning that a block may give another, by how that block is chosen."""


class Binding(NamedTuple):
    """A place where a name gets a meaning; `order` counts all such places of a file."""

    block: Block
    order: int
    meanings: Meanings


class Scope:
    """The names of a module, class, function or comprehension.

    Attributes:
      parent: the scope around it; `block` and `order` are its place there.
      is_lazy: whether it runs later than the place where it is written.
      outer_names: those of `global` and `nonlocal` statements.
      unknown: names that were listed as unknown, for the whole function.
    """

    __slots__ = ('names', 'parent', 'block', 'order', 'is_class', 'is_lazy', 'is_comprehension',
                 'outer_names', 'unknown')

    def __init__(self, parent: Scope | None, block: Block, order: int, *, is_class: bool = False,
                 is_lazy: bool = False, is_comprehension: bool = False):
        self.names: dict[str, list[Binding]] = {}
        self.parent, self.block, self.order = parent, block, order
        self.is_class, self.is_lazy = is_class, is_lazy
        self.is_comprehension = is_comprehension
        self.outer_names: set[str] = set()
        self.unknown: set[str] = (
            parent.unknown if parent is not None and is_comprehension else set())

    def live(self, name: str, block: Block, order: int, is_later: bool) -> tuple[Meanings, int]:
        """Returns what a name may mean at a place, and the order of the oldest such binding.

        A binding hides those before it if each run that gets to the place has passed it. The place
        has passed those up to `order`, and if it may run again later, all others too.
        """
        bindings = self.names.get(name)
        if bindings is None:
            return (), 0
        found: list[Meanings] = []
        older, first = CERTAIN, 0
        for one in reversed(bindings):
            is_after = one.order > order
            choice = one.block.seen_from(block)
            if is_after and not is_later or choice is None and not is_after:
                continue
            choice = max(choice or CERTAIN, older)
            found.append(tuple(each.under(choice) for each in one.meanings)
                         if choice else one.meanings)
            first = one.order
            if one.block in block.around and not is_after:
                break
            if one.block.parent in block.around:
                older = max(older, _OTHERWISE.get(one.block.own, CERTAIN))
        return found[0] if len(found) == 1 else union(reversed(found)), first


class Exports(NamedTuple):
    """What a module of the project hands out."""

    names: Mapping[str, Meanings]
    stars: Meanings = ()  # Modules of which it imports all names.
    is_open: bool = False  # It may have more names, such as by `globals()` or `exec`.
    is_unknown: bool = False  # A part of it was not read.
