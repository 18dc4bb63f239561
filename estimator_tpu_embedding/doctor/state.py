"""Keeps all names of one file while its statements are followed, and records its uses."""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from .facts import Finding, Place, Question, Use
from .meanings import (
    ALWAYS,
    ATTRIBUTE,
    FLAGS,
    IMPORT,
    NAME,
    OTHERS,
    Condition,
    Exports,
    Meaning,
    Meanings,
    below,
    is_examined,
    union,
)
from .meanings import Names as Bound
from .nodes import Nodes
from .places import Places

TENSORFLOW = frozenset({
    'tf', 'tensorflow', 'tfe', 'tf1', 'tf2', 'tfv1', 'tfv2', 'tf_v1', 'tf_v2', '_tf'})
"""Names that programs give to TensorFlow: a look-up in one of unknown meaning is listed."""
PYTHON_2 = frozenset({
    'apply', 'basestring', 'buffer', 'cmp', 'coerce', 'execfile', 'file', 'intern', 'long',
    'raw_input', 'reduce', 'reload', 'unichr', 'unicode', 'xrange'})
BRANCH = 'branch'
"""In `Condition.caught`: the place may be in a branch that is not taken, also in a function."""
NEVER = 'never'
"""In `Condition.caught`, beside `BRANCH`: the branch is not taken."""
_CHANGES = 'means {} too, before or after this line: what is asked of it there was not checked'
_MOST_STARS = 20
"""The most `from a import *` that a name may come from: the last ones."""
_BUILTINS = frozenset(dir(builtins)) | {'__file__', '__path__'}


class Modules(Protocol):
    """The other files of the project."""

    def find(self, importer: str, module: str) -> str | None:
        """The file or folder of an absolute import, `''` if a part is missing, or `None`."""

    def relative(self, importer: str, level: int, module: str) -> str:
        """The file or folder of a relative import, or `''`."""

    def submodule(self, file: str, name: str) -> str:
        """The file or folder of a module of a package, or `''`."""

    def package_around(self, importer: str, top: str) -> str:
        """The folder of the package that holds a module, or `''`."""

    def exports(self, file: str) -> Exports:
        """What a module hands out."""

    def resolve(self, meaning: Meaning) -> Meanings | None:
        """What a name in a module means, or another module; `None` if it is certainly not there."""

    def name(self, file: str) -> str:
        """The dotted name of a module."""

    def packages(self, file: str) -> Sequence[str]:
        """The files of the packages that a module is in, outermost first."""


class Scope:
    """The names of a module, class, function or comprehension."""

    __slots__ = ('parent', 'names', 'is_class', 'is_comprehension', 'outer_names', 'unknown')

    def __init__(self, parent: Scope | None, *, is_class: bool = False,
                 is_comprehension: bool = False):
        self.parent = parent
        self.names: Bound = {}
        self.is_class = is_class
        self.is_comprehension = is_comprehension
        self.outer_names: set[str] = set()  # Those of `global` statements.
        # Names that were listed as unknown, for the whole function.
        self.unknown: set[str] = (
            parent.unknown if parent is not None and is_comprehension else set())


class State:
    """One file.

    Attributes:
      file: absolute path, as the project knows it.
      places: where nodes are.
      project: the other files.
      has_versions: whether the text perhaps compares versions.
      parents: the node around each node of the tree, if it is sought what escapes.
      globals, nonlocals: names of such statements.
      is_shallow: whether only names at the top level are wanted, so no other file is examined.
      uses: of names of libraries.
      kinds: by use, the kind of look-up and the number of `try` statements around it.
      unknown: findings about names that cannot be resolved.
      escapes: names of libraries where nobody follows them, with what to say of a module there.
      attributes: of objects of the file, which are known and no library.
      beside: imports of modules in a package without its name, and the folder of the package.
      imports: modules of the project, with the place of the first import.
      meant: what a `Name` of the tree means, by its id.
      scope: where names are bound now.
      condition: when the present place is reached.
      here: the present statement.
      depth: number of `try` statements around the present place that catch failed look-ups.
      dotted: modules of `import a.b.c`.
      stars: modules of `from a import *`.
      lazy: functions and generators, which run later; `lazy_names` has the names of earlier ones.
      waiting: bodies of functions, with their scope and condition.
      patched: names of libraries that the file assigns to.
      early: uses of such names that come before.
      needs_stars: whether names are used that perhaps come from `from a import *` of a package
        whose names nobody may look up.
      unknown_stars: these imports, and their packages.
      is_open: whether the module has names that no statement shows.
    """

    def __init__(self, file: str, places: Places, project: Modules, *, is_shallow: bool = False,
                 has_versions: bool = True, nodes: Nodes | None = None):
        self.file, self.places, self.project = file, places, project
        nodes = nodes or Nodes(ast.Pass())
        self.parents = nodes.parents
        self.globals = {name for one in nodes.of(ast.Global) for name in one.names}
        self.nonlocals = {name for one in nodes.of(ast.Nonlocal) for name in one.names}
        self.has_versions = has_versions
        self.is_shallow = is_shallow
        self.uses: list[Use] = []
        self.kinds: list[tuple[str, int]] = []
        self.unknown: list[Finding] = []
        self.escapes: dict[Use, str] = {}
        self.beside: list[tuple[str, Use]] = []
        self.imports: dict[str, Place] = {}
        self.attributes: set[str] = set()
        self.meant: dict[int, Meanings] = {}
        self.scope = self.module = Scope(None)
        self.condition = ALWAYS
        self.here: ast.AST = ast.Pass()
        self.depth = 0
        self.dotted: set[str] = set()
        self.stars: list[Meaning] = []
        self.lazy: list[ast.AST] = []
        self.lazy_names: set[str] = set()
        self.waiting: deque[tuple[ast.AST, Scope, Condition]] = deque()
        self.patched: set[str] = set()
        self.early: set[Use] = set()
        self.is_open = False
        self.needs_stars = False
        self.unknown_stars: list[tuple[ast.AST, str]] = []
        self.has_lazy_annotations = False

    def bind(self, name: str, meanings: Meanings) -> None:
        """Gives a name a meaning in the present scope."""
        scope = self.scope
        if name not in scope.outer_names:
            self.note_end(name, meanings)
            scope.names[name] = meanings
            return
        known = self.module.names.get(name, OTHERS)
        self.module.names[name] = meanings if known is OTHERS else union(known, meanings)

    def is_followed(self, name: str) -> bool:
        """Whether the scan knows what a name means that is bound in the present scope."""
        return not (self.scope.is_class or name in self.nonlocals | self.scope.outer_names)

    def note_attribute(self, name: str, meanings: Meanings) -> None:
        """Notes that objects of the file have an attribute which is known, and no library."""
        if all(one.constant is not None for one in meanings):
            self.attributes.add(name)

    def note_end(self, name: str, meanings: Meanings) -> None:
        """Notes what a name means no more when functions that use it are followed."""
        old = self.scope.names.get(name) if self.parents and not self.scope.is_class else None
        if old and old != meanings and any(one.question or one.file for one in old):
            while self.lazy:
                self.lazy_names.update(node.id for node in ast.walk(self.lazy.pop())
                                       if isinstance(node, ast.Name))
            self.note_other(name, old, meanings, lambda: name in self.lazy_names)

    def note_other(self, name: str, unseen: Meanings, seen: Meanings,
                   is_used: Callable[[], bool] = lambda: True) -> None:
        """Notes what a name means too, if code uses it that is followed with other meanings."""
        known = {one.question.path for one in self.modules(seen) if one.question}
        others = [one for one in self.modules(unseen)
                  if one.question and one.question.path not in known]
        if others and is_used():
            self.note_modules(self.here, name, others, _CHANGES)

    def note_modules(self, node: ast.AST, written: str, meanings: Sequence[Meaning], what: str
                     ) -> None:
        """Notes names of libraries, and what to say of those that are modules."""
        for one in self.modules(meanings):
            condition = self.condition.also(one.condition)
            if one.question is not None and is_examined(one.question.module):
                self.escapes[Use(self.places.of(node), one.question, written,
                                 only_if=condition.only_if, unless=condition.unless)
                             ] = what.format(one.question.path)

    def modules(self, meanings: Sequence[Meaning]) -> list[Meaning]:
        """Returns the names of libraries among some meanings, also in modules of the project."""
        waiting, seen, result = [*self.final(tuple(meanings), '')], set[str](), list[Meaning]()
        while waiting:
            one = waiting.pop()
            if one.question is not None:
                result.append(one)
            elif one.file not in seen and not self.is_shallow:
                seen.add(one.file)
                exports = self.project.exports(one.file)
                waiting += [each for name in exports.names
                            for each in self.final((Meaning(file=one.file),), name)]
                waiting += exports.stars
        return result

    def lookup(self, name: str) -> Meanings | None:
        """Returns what a name means here; `None` if nothing binds it."""
        found = self.bound(name)
        return self.from_stars(name) if found is None and self.stars else found

    def bound(self, name: str) -> Meanings | None:
        """Returns what a name means that a statement binds by its name."""
        scope: Scope | None = self.scope
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def from_stars(self, name: str) -> Meanings | None:
        """Returns what a name means that perhaps some `from a import *` binds."""
        asked: list[Question] = []
        for star in reversed(self.stars[-_MOST_STARS:]):
            if star.question is not None:
                if name not in _BUILTINS:
                    asked.append(Question(star.question.module, name, True))
            elif not star.file or self.is_shallow:
                return OTHERS
            else:
                found = self.project.resolve(star._replace(names=name))
                if found is not None:
                    return found
        examined = [one for one in asked if is_examined(one.module)]
        if name in PYTHON_2:
            return (Meaning(Question('builtins', name), unless=tuple((one,) for one in asked)),)
        if len(examined) < len(asked):
            self.needs_stars = True
        if not examined:
            return OTHERS if asked else None
        # The last import wins, and the others have what it lacks.
        return (Meaning(examined[0], unless=tuple((one,) for one in asked if one != examined[0])),)

    def use(self, node: ast.AST, question: Question, written: str, kind: str,
            condition: Condition | None = None) -> None:
        """Records that the present place uses a name of a library."""
        condition = self.condition if condition is None else condition
        self.uses.append(Use(self.places.of(node), question, written, kind in condition.caught,
                             only_if=condition.only_if, unless=condition.unless))
        self.kinds.append((kind, -1 if BRANCH in condition.caught else self.depth))

    def use_names(self, node: ast.AST, base: Meanings, names: str, written: str,
                  kind: str = ATTRIBUTE, condition: Condition | None = None) -> None:
        """Records look-ups in something that may mean several things.

        Where all other meanings are `None`, the program fails without the library's. So the last
        of these is needed whether or not its import succeeded.
        """
        if base is OTHERS:
            return
        here = self.condition if condition is None else condition
        meanings = self.final(base, names)
        libraries = [one for one in meanings if one.question is not None]
        has_other = any(one.question is None and not one.is_none for one in meanings)
        for number, one in enumerate(libraries, 1):
            question = one.question
            assert isinstance(question, Question)
            is_flag = question.names.endswith(FLAGS) and names and not names.endswith(FLAGS)
            if is_examined(question.module) and not is_flag:
                if number == len(libraries) and not has_other and one.only_if:
                    one = one._replace(only_if=())
                self.use(node, question, written, kind,
                         here.also(one.condition) if one.only_if or one.unless else here)

    def final(self, base: Meanings, names: str) -> Meanings:
        """Returns what dotted names in something mean, through other files of the project."""
        result: list[Meaning] = []
        for one in base:
            if one.question is not None:
                result.append(one.asks(self.below(one.question, names)) if names else one)
            elif one.file:
                whole = f'{one.names}.{names}' if one.names and names else one.names or names
                found = None if self.is_shallow else self.project.resolve(
                    one._replace(names=whole))
                result += OTHERS if found is None else found
            elif not names or one.is_none:
                result.append(one)
            else:
                result += OTHERS
        return tuple(result)

    def below(self, question: Question, names: str) -> Question:
        """Returns the question about dotted names in a module or in a name of it.

        After `import a.b` the name `a` has `b`, which nobody else need have imported.
        """
        if not question.names and self.dotted:
            parts = names.split('.')
            for end in range(min(len(parts), 20), 0, -1):
                module = '.'.join((question.module, *parts[:end]))
                if module in self.dotted:
                    return Question(module, '.'.join(parts[end:]))
        return below(question, names)

    def list_unknown(self, node: ast.AST, name: str, written: str) -> None:
        """Lists that a name which programs give to TensorFlow means something unknown here."""
        if self.is_shallow or name in self.scope.unknown:
            return
        self.scope.unknown.add(name)
        self.unknown.append(Finding(
            'W201', self.places.of(node), name, written,
            f'nothing here says what "{name}" is, so its names are not checked', 'unknown'))

    def say(self, code: str, node: ast.AST, subject: str, written: str, message: str) -> None:
        """Lists a name that is missing or cannot be known, unless the program survives it."""
        if self.is_shallow or IMPORT in self.condition.caught:
            return
        if code == 'E112' and (self.condition.only_if or self.condition.unless):
            # Answers decide whether it is reached, so it must be a use. No library has it.
            module, _, name = subject.rpartition('.')
            self.use(node, Question(module, name, True) if module.strip('.') else Question(subject),
                     written, IMPORT)
        else:
            self.unknown.append(Finding(
                code, self.places.of(node), subject, written, message,
                'lost' if code == 'E112' else 'unknown'))

    def use_builtin(self, node: ast.Name) -> None:
        """Records a name that no scope binds."""
        self.meant[id(node)] = (Meaning(Question('builtins', node.id)),)
        if node.id in PYTHON_2:
            self.use(node, Question('builtins', node.id), node.id, NAME)

    def later(self, node: ast.AST) -> None:
        """Keeps the body of a function until all names around it are known.

        A `try` around its definition does not catch what its calls raise.
        """
        condition = self.condition
        if condition.caught and BRANCH not in condition.caught:
            condition = condition._replace(caught=frozenset())
        self.waiting.append((node, self.scope, condition))
        self.lazy.append(node)
