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

    Guarded names force no flag. Flags that others force decide which handlers are reached.
    """

    def __init__(self, files: Sequence[ScannedFile], answers: Mapping[Question, Answer]):
        """Finds what each file needs.

        Args:
          files: all files of the project.
          answers: what the libraries said.
        """
        imports = Reached(files)
        self._answers = answers
        self._closures = {file.path: [one.path for one in imports.files_of(file)]
                          for file in files}
        self._needs = {file.path: _needs_of(file, answers) for file in files}
        self._worlds: dict[str, dict[tuple[bool, bool], None]] = collections.defaultdict(dict)
        self._programs_of: dict[str, dict[tuple[frozenset[Use], Use], None]] = (
            collections.defaultdict(dict))
        for group in imports.groups():
            needs = _sum(self._needs[file.path] for file in group)
            flags = _chosen(needs)
            lacking, other = (needs.tf2, needs.tf1) if flags.tf1 else (needs.tf1, needs.tf2)
            for file in group:
                self._worlds[file.path][bool(flags.tf1), bool(flags.contrib)] = None
                if lacking and other:
                    self._programs_of[file.path][frozenset(lacking), other[0]] = None

    def is_reached(self, file: ScannedFile, use: Use) -> bool:
        """Whether some program gets to this name of a file."""
        asked = [one for one in use.questions[1:] if one in self._answers]
        return not asked or any(
            use.is_reached({one: _is_there(self._answers[one], *world) for one in asked})
            for world in self._worlds[file.path])

    def flags_of(self, file: ScannedFile) -> Flags:
        """Returns what a file needs with all files that it imports."""
        return _chosen(_sum(self._needs[one] for one in self._closures[file.path]))

    def contradiction(self, file: ScannedFile, use: Use) -> Use | None:
        """Returns a name that is not there when `use` is, in some program that needs both.

        There is one only if that program is to be run without what `use` needs.
        """
        return next((other for lacking, other in self._programs_of.get(file.path, ())
                     if use in lacking), None)


def _is_there(answer: Answer, tf1: bool, contrib: bool) -> bool:
    if contrib and answer.contrib and not (answer.run or answer.tf1):
        return True
    return answer.tf1 if tf1 else answer.run


def _needs_of(file: ScannedFile, answers: Mapping[Question, Answer]) -> _Needs:
    there = {one: answer.run for one, answer in answers.items()}
    known = [(use, answers[use.question]) for use in file.uses
             if not use.is_guarded and use.question in answers and use.is_reached(there)]
    return _Needs(
        tuple(use for use, answer in known if answer.tf1 and not answer.run),
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
