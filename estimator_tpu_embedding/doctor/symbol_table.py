"""Says what each name of a file may mean, where it was bound, and how that was chosen.

A `State` keeps all names of one file while its statements are followed, and records its uses.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from .findings import CERTAIN, FALLBACK, STARRED, TESTED, TRIED, Finding, Question, ScannedFile, Use
from .syntax import Nodes, Places, chain_of

if TYPE_CHECKING:
    from .project import Project

IMPORT, ATTRIBUTE, NAME = 'import', 'attribute', 'name'
"""Kinds of look-ups. An ImportError, AttributeError or NameError tells that one failed."""
ALL = frozenset({IMPORT, ATTRIBUTE, NAME})

EXAMINED = frozenset({'builtins', 'keras', 'numpy', 'tf_keras'}) | sys.stdlib_module_names
"""Packages whose attributes are looked up, beside those of TensorFlow."""

TENSORFLOW = frozenset({
    'tf', 'tensorflow', 'tfe', 'tf1', 'tf2', 'tfv1', 'tfv2', 'tf_v1', 'tf_v2', '_tf'})
"""Names that programs give to TensorFlow: a look-up in one of unknown meaning is listed."""
PYTHON_2 = frozenset({
    'apply', 'basestring', 'buffer', 'cmp', 'coerce', 'execfile', 'file', 'intern', 'long',
    'raw_input', 'reduce', 'reload', 'unichr', 'unicode', 'xrange'})
MADE_NAMES = ('tensorflow', 'keras', 'tf_keras', 'numpy')
"""Libraries of which a name that is made at run time is listed."""
_MOST_STARS = 20
"""The most `from a import *` that a name may come from: the last ones."""
_BUILTINS = frozenset(dir(builtins)) | {'__file__', '__path__'}


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

    def inside(self, names: str, dotted: Set[str] = frozenset()) -> Meaning:
        """Returns what dotted names in it mean; those of other files stay unresolved.

        `dotted` are modules of `import a.b`: `a` then has `b`, whoever else has imported it.
        """
        if not names:
            return self
        if self.question is not None:
            return self._replace(question=_below(self.question, names, dotted))
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


def _below(question: Question, names: str, dotted: Set[str]) -> Question:
    """Returns the question about dotted names in something; after very many it stays the same."""
    parts = names.split('.') if dotted and not question.names else []
    for end in range(min(len(parts), 20), 0, -1):
        module = '.'.join((question.module, *parts[:end]))
        if module in dotted:
            return Question(module, '.'.join(parts[end:]))
    if question.names.endswith(FLAGS) or len(question.names) > _MOST_CHARACTERS:
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


class State:
    """One file.

    Attributes:
      file: absolute path, as the project knows it.
      is_shallow: whether only names at the top level are wanted, so no other file is examined.
      scanned: what is found; some names are there more than once.
      scope, block: where names are bound now; `order` counts all such places.
      trying: the numbers of the `try`s around it, and the kinds that they catch.
      stars: modules of `from a import *`; `unknown_stars` are those of packages whose names nobody
        may look up, and `needs_stars` whether names are used that perhaps come from them.
      waiting: functions and generators, which run when all around them is known; `lazy` are their
        nodes.
    """

    def __init__(self, file: str, places: Places, project: Project, nodes: Nodes | None = None):
        """Begins with an empty module; without `nodes` the scan is shallow."""
        self.file, self.places, self.project = file, places, project
        self.is_shallow = nodes is None
        nodes = nodes or Nodes(ast.Pass())
        self.parents, self.hints = nodes.parents, nodes.hints
        self.globals = {name for one in nodes.of(ast.Global) for name in one.names}
        self.nonlocals = {name for one in nodes.of(ast.Nonlocal) for name in one.names}
        self.scanned = ScannedFile(places.path)
        self.meant: dict[int, Meanings] = {}  # By the id of a `Name`.
        self.block = Block()
        self.scope = self.module = Scope(None, self.block, 0)
        self.order = 0
        self.caught: frozenset[str] = frozenset()  # Kinds of look-ups that may fail here.
        self.trying: tuple[tuple[int, frozenset[str]], ...] = ()
        self.attempts: dict[ast.AST, int] = {}
        self.is_again = False  # Whether a loop is followed once more.
        self.dotted: set[str] = set()  # Modules of `import a.b.c`.
        self.stars: list[Binding] = []
        self.waiting: list[tuple[ast.AST, Scope, Block, frozenset[str]]] = []
        self.lazy: set[ast.AST] = set()
        self.is_open = False  # Whether the module has names that no statement shows.
        self.needs_stars = False
        self.unknown_stars: list[tuple[ast.AST, str]] = []
        self.has_lazy_annotations = False

    def bind(self, name: str, meanings: Meanings) -> None:
        """Gives a name a meaning in the present scope."""
        self.order += 1
        if name in self.scope.outer_names:
            known = [one for one in self.module.names.get(name, ()) if one.order]
            self.module.names[name] = [
                *known, Binding(Block(self.module.block), self.order, meanings)]
        else:
            self.scope.names.setdefault(name, []).append(
                Binding(self.block, self.order, meanings))

    def is_followed(self, name: str) -> bool:
        """Whether the scan knows what a name means that is bound in the present scope."""
        return not (self.scope.is_class or name in self.nonlocals | self.scope.outer_names)

    def note_modules(self, node: ast.AST, written: str, meanings: Sequence[Meaning]) -> None:
        """Notes names of libraries that are perhaps modules which nobody follows."""
        waiting, seen = [*self.final(tuple(meanings), '')], set[str]()
        while waiting:
            one = waiting.pop()
            if one.question is not None:
                if is_examined(one.question.module):
                    self.scanned.escapes[Use(self.places.of(node), one.question, written)] = None
            elif one.file not in seen:  # A module may hold others.
                seen.add(one.file)
                exports = self.project.exports(one.file)
                waiting += [each for name in exports.names
                            for each in self.final((Meaning(file=one.file),), name)]
                waiting += exports.stars

    def lookup(self, name: str) -> Meanings | None:
        """Returns what a name means here; `None` if nothing binds it."""
        found = self.bound(name)
        return self.from_stars(name) if found is None and self.stars else found

    def bound(self, name: str) -> Meanings | None:
        """Returns what a name means that a statement binds by its name."""
        scope: Scope | None = self.scope
        block, order, is_later = self.block, self.order, False
        while scope is not None:
            found, first = scope.live(name, block, order, is_later)
            if found:
                if scope is self.module and any(one.is_module for one in found):
                    found = union((found, *(self._in_star(star, name) for star in self.stars
                                            if star.order > first)))
                return found
            block, order, is_later = scope.block, scope.order, is_later or scope.is_lazy
            scope = scope.parent
        return None

    def _in_star(self, star: Binding, name: str) -> Meanings:
        """Returns what `from a import *` makes of a name that was bound before."""
        module = star.meanings[0]
        if module.file and not self.is_shallow:
            return self.project.resolve(module._replace(names=name)) or ()
        if module.question is None or not module.question.module.startswith(MADE_NAMES):
            return ()
        return (Meaning(Question(module.question.module, name, True), choice=STARRED),)

    def from_stars(self, name: str) -> Meanings | None:
        """Returns what a name means that perhaps some `from a import *` binds."""
        asked: list[Question] = []
        for star in reversed(self.stars[-_MOST_STARS:]):
            module = star.meanings[0]
            if module.question is not None:
                if name not in _BUILTINS:
                    asked.append(Question(module.question.module, name, True))
            elif not module.file or self.is_shallow:
                return OTHERS
            elif (found := self.project.resolve(module._replace(names=name))) is not None:
                return found
        examined = [one for one in asked if is_examined(one.module)]
        if name in PYTHON_2:
            examined.insert(0, Question('builtins', name))
        elif len(examined) < len(asked):
            self.needs_stars = True
        if not examined:
            return OTHERS if asked else None
        # The others have what the last import lacks.
        return (Meaning(examined[0], choice=FALLBACK), *(
            Meaning(one, choice=STARRED) for one in asked if one != examined[0]))

    def use(self, node: ast.AST, question: Question, written: str, kind: str,
            meaning: Meaning = OTHER, has_other: bool = False, is_survived: bool = False
            ) -> None:
        """Records that the present place uses a name of a library, as `meaning` came to be.

        If `is_survived`, the program goes on without it, whatever is around.
        """
        is_guarded = self.block.is_guarded
        attempt = 0 if is_guarded else next(
            (number for number, kinds in reversed(self.trying) if kind in kinds), 0)
        self.scanned.uses.append(Use(
            self.places.of(node), question, written,
            is_survived or is_guarded or kind in self.caught, attempt, self.block.fallbacks,
            meaning.choice, meaning.chosen, has_other))

    def use_names(self, node: ast.AST, base: Meanings, names: str, written: str,
                  kind: str = ATTRIBUTE, is_survived: bool = False) -> None:
        """Records look-ups in something that may mean several things.

        Where all other meanings are `None`, the program fails without the library's.
        """
        meanings = self.final(base, names)
        has_other = any(one.question is None and one.kind != NONE for one in meanings)
        for one in meanings:
            question = one.question
            if question is None or not (is_examined(question.module) or one.choice == STARRED):
                continue
            if not (question.names.endswith(FLAGS) and names and not names.endswith(FLAGS)):
                self.use(node, question, written, kind, one, has_other, is_survived)

    def final(self, base: Meanings, names: str) -> Meanings:
        """Returns what dotted names in something mean, through other files of the project."""
        result: list[Meaning] = []
        for one in self.inside(base, names):
            if not one.file:
                result.append(one)
            else:
                found = None if self.is_shallow else self.project.resolve(one)
                result += OTHERS if found is None else found
        return tuple(result)

    def inside(self, meanings: Meanings, names: str) -> Meanings:
        """Returns what dotted names in something mean; those of other files stay unresolved."""
        return tuple(one.inside(names, self.dotted) for one in meanings) if names else meanings

    def list_unknown(self, node: ast.AST, name: str, written: str) -> None:
        """Lists that a name which programs give to TensorFlow means something unknown here."""
        if name not in self.scope.unknown:
            self.scope.unknown.add(name)
            self.say('W201', node, name, written,
                     f'nothing here says what "{name}" is, so its names are not checked')

    def say(self, code: str, node: ast.AST, subject: str, written: str, message: str) -> None:
        """Lists a name that is missing or cannot be known.

        A name that is missing under a condition is a use, of which no library has an answer.
        """
        if code == 'E112' and (self.block.is_guarded or self.block.fallbacks
                               or IMPORT in self.caught):
            module, _, name = subject.rpartition('.')
            self.use(node, Question(module, name, True) if module.strip('.') else Question(subject),
                     written, IMPORT)
        else:
            self.scanned.unknown.append(Finding(
                code, self.places.of(node), subject, written, message,
                'lost' if code == 'E112' else 'unknown'))

    def later(self, node: ast.AST, caught: frozenset[str] = frozenset()) -> None:
        """Keeps a function or generator until all names around it are known.

        A `try` around the definition of a function does not catch what its calls raise.
        """
        if node in self.lazy:
            return
        self.lazy.add(node)
        parent, block, order = self.scope, self.block, self.order
        while parent.is_class and parent.parent is not None:  # Methods do not see its names.
            parent, block, order = parent.parent, parent.block, parent.order
        own = Block(own=TESTED if self.block.is_guarded else CERTAIN,
                    fallbacks=self.block.fallbacks)
        self.waiting.append((node, Scope(parent, block, order, is_lazy=True), own, caught))

    def resolve_all(self, node: ast.expr) -> tuple[str, ...]:
        """Returns all paths that `a.b` may have after all was followed, as `'tensorflow.nn.relu'`.

        The result of a call has no path, and neither have its attributes.
        """
        base, names = chain_of(node)
        meanings = self.meant.get(id(base))
        return tuple(dict.fromkeys(
            one.question.path for one in self.final(meanings, '.'.join(names))
            if one.question is not None)) if meanings else ()
