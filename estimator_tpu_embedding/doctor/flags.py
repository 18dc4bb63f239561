"""Finds which flags of `etpe run` a program needs, with all files of the project that it imports.

A program that uses `tensorflow.contrib` was written for TensorFlow 1. So it gets `--tf1` too,
unless a name shows that somebody has carried it to TensorFlow 2.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from . import libraries
from .facts import Answer, Question, ScannedFile, Use
from .reached import Reached

_OF_TODAY = re.compile(r'tensorflow\.compat\.v[12](\.|$)')


class Flags(NamedTuple):
    """Which flags of `etpe run` a program needs, and for which names.

    Attributes:
      tf1: uses that need `--tf1`, in order; none if the program runs without it.
      contrib: uses that need `--contrib`.
    """

    tf1: tuple[Use, ...] = ()
    contrib: tuple[Use, ...] = ()


class _Needs(NamedTuple):
    """The uses of one file, or of several, by what they need.

    Attributes:
      tf1: found with `--tf1` only.
      tf2: found without `--tf1` only.
      contrib: of `tf.contrib`, also if `--contrib` lacks them.
      is_of_today: whether a name says that it was made for TensorFlow 2.
    """

    tf1: tuple[Use, ...] = ()
    tf2: tuple[Use, ...] = ()
    contrib: tuple[Use, ...] = ()
    is_of_today: bool = False


class Project:
    """All files, and what each needs with the files that it imports.

    Which names a program reaches may depend on the flags that others of its names force.
    """

    def __init__(self, files: Sequence[ScannedFile], answers: Mapping[Question, Answer]):
        """Finds what each file needs.

        Args:
          files: all files of the project.
          answers: what the libraries said.
        """
        imports = Reached(files)
        self._closures = {file.path: [one.path for one in imports.files_of(file)]
                          for file in files}
        roots = [file.path for file in files if file.is_program]
        reached = {path for root in roots for path in self._closures[root]}
        self._roots = roots + [file.path for file in files if file.path not in reached]
        worlds = {file.path: {Flags()} for file in files}
        self._needs: dict[str, _Needs] = {}
        for _ in range(2):  # First without flags, then with those that the first names force.
            self._reached = {file.path: _reached(file, answers, worlds[file.path])
                             for file in files}
            earlier = self._needs  # `if not TF1: tf.placeholder()` is reached without it only.
            self._needs = {file.path: _needs_of(file, answers, self._reached[file.path],
                                                earlier.get(file.path, _Needs()).tf1)
                           for file in files}
            worlds = self._worlds()
        self._whole = _sum(self._needs.values())
        self._programs_of: dict[str, dict[tuple[frozenset[Use], Use], None]] = (
            collections.defaultdict(dict))
        for root in self._roots:
            needs = self._with_imports(root)
            has_tf1 = bool(_chosen(needs).tf1)
            lacking, other = (needs.tf2, needs.tf1) if has_tf1 else (needs.tf1, needs.tf2)
            if lacking and other:
                for path in self._closures[root]:
                    self._programs_of[path][frozenset(lacking), other[0]] = None

    def is_reached(self, file: ScannedFile, use: Use) -> bool:
        """Whether some program gets to this name of a file."""
        return use in self._reached[file.path]

    def flags_of(self, file: ScannedFile) -> Flags:
        """Returns what a file needs with all files that it imports."""
        return _chosen(self._with_imports(file.path))

    def whole(self) -> Flags:
        """Returns what all files together need."""
        return _chosen(self._whole)

    def contradiction(self, file: ScannedFile, use: Use) -> Use | None:
        """Returns a name that is not there when `use` is, in some program that needs both.

        There is one only if that program is to be run without what `use` needs.
        """
        return next((other for lacking, other in self._programs_of.get(file.path, ())
                     if use in lacking), None)

    def _worlds(self) -> dict[str, set[Flags]]:
        """Returns by file the flags of the programs that it belongs to."""
        found: dict[str, set[Flags]] = collections.defaultdict(set)
        for root in self._roots:
            flags = _chosen(self._with_imports(root))
            for path in self._closures[root]:
                found[path].add(Flags(flags.tf1[:1], flags.contrib[:1]))
        return found

    def _with_imports(self, path: str) -> _Needs:
        return _sum(self._needs[one] for one in self._closures[path])


def _reached(file: ScannedFile, answers: Mapping[Question, Answer], worlds: Iterable[Flags]
             ) -> frozenset[Use]:
    """Returns the uses of a file that are reached with any of some flags."""
    found: set[Use] = set()
    uses = [*file.uses, *file.escapes]
    questions = {one for use in uses for one in use.questions[1:] if one in answers}
    for flags in worlds:
        there = {one: _is_there(answers[one], flags) for one in questions}
        found |= {use for use in uses if use.is_reached(there)}
        found |= {use for use in _from_stars(file) if use.question in answers
                  and answers[use.question].tf1
                  and use.is_reached({**there, use.question: True})}
    return frozenset(found)


def _from_stars(file: ScannedFile) -> list[Use]:
    """Returns the uses that mean a name of `from module import *` if the module has that name.

    Nothing excuses that such a name is missing. So a flag that brings it is needed.
    """
    stars = {use.question.module for use in file.uses if use.written.endswith('.*')}
    return [use for use in file.uses if use.question.is_import
            and use.question.module in stars and use.question in use.only_if]


def _is_there(answer: Answer, flags: Flags) -> bool:
    if flags.contrib and answer.contrib and not (answer.run or answer.tf1):
        return True
    return answer.tf1 if flags.tf1 else answer.run


def _needs_of(file: ScannedFile, answers: Mapping[Question, Answer], reached: frozenset[Use],
              earlier: tuple[Use, ...]) -> _Needs:
    known = [(use, answers[use.question]) for use in file.uses
             if use in reached and not use.is_guarded and use.question in answers]
    return _Needs(
        tuple(use for use, answer in known if answer.tf1 and not answer.run) or earlier,
        tuple(use for use, answer in known if answer.run and not answer.tf1),
        tuple(use for use, answer in known if libraries.in_contrib(use.question.path)
              and not (answer.run or answer.tf1)),
        any(_OF_TODAY.match(use.question.path) for use, _ in known))


def _sum(parts: Iterable[_Needs]) -> _Needs:
    several, joined = list(parts), itertools.chain.from_iterable
    return _Needs(tuple(joined(part.tf1 for part in several)),
                  tuple(joined(part.tf2 for part in several)),
                  tuple(joined(part.contrib for part in several)),
                  any(part.is_of_today for part in several))


def _chosen(needs: _Needs) -> Flags:
    """Decides between names that `--tf1` brings and those that it hides: the fewer are lost."""
    if needs.tf1:
        brought, hidden = ({use.question for use in uses
                            if libraries.top(use.question) == 'tensorflow'}
                           for uses in (needs.tf1, needs.tf2))
        return Flags(needs.tf1 if len(brought) >= len(hidden) else (), needs.contrib)
    is_old = needs.contrib and not needs.tf2 and not needs.is_of_today
    return Flags(needs.contrib if is_old else (), needs.contrib)
