"""Judges every name, and finds which flags of `etpe run` each program needs.

A program that uses `tensorflow.contrib` was written for TensorFlow 1. So it gets `--tf1` too,
unless a name shows that somebody has carried it to TensorFlow 2.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from . import libraries, reasons
from .facts import Answer, Finding, Place, Question, ScannedFile, Use
from .oracle import Answers
from .reached import Reached

_OF_TODAY = re.compile(r'tensorflow\.compat\.v[12](\.|$)')
_HINT = {'tf1': 'with --tf1 it is there', 'contrib': 'with --contrib it is there'}


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


class Needed:
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
            flags = _flags_for(needs)
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
        return _flags_for(_sum(self._needs[one] for one in self._closures[file.path]))

    def contradiction(self, file: ScannedFile, use: Use) -> Use | None:
        """Returns a name that is not there when `use` is, in some program that needs both.

        There is one only if that program is to be run without what `use` needs.
        """
        return next((other for lacking, other in self._programs_of.get(file.path, ())
                     if use in lacking), None)


class Judged(NamedTuple):
    """What became of all names.

    Attributes:
      findings: in no particular order, without repetitions.
      verdicts: how many uses have each of `facts.VERDICTS`. Names of packages that are never
        imported are not among them, except their modules.
      flags: by path of each file, what it needs with all files of the project that it imports.
    """

    findings: Sequence[Finding]
    verdicts: Mapping[str, int]
    flags: Mapping[str, Flags]


def judge(files: Sequence[ScannedFile], answers: Answers) -> Judged:
    """Judges all uses of all files.

    Args:
      files: all files of the project; their `unknown` and `problems` are findings already.
      answers: of `oracle.ask` about `use.question` of all their uses.
    """
    for file in files:
        file.uses = list(_chosen(file.uses, answers.found))
    needed = Needed(files, answers.found)
    findings: dict[Finding, None] = {}
    verdicts: collections.Counter[str] = collections.Counter()
    for file in files:
        for use, reason in _reasons(file, answers, needed):
            answer = answers.found.get(use.question)
            if answer is None or answer.is_examined or reason.code:
                verdicts[reason.verdict] += 1
            if reason.code and not (reason.code == 'E111' and _is_no_import(use)):
                subject = use.question.path.removeprefix('builtins.')
                findings[Finding(reason.code, use.place, subject, use.written, reason.message,
                                 reason.verdict, reason.successor)] = None
        escaped: dict[Place, Finding] = {}  # A name may mean several modules.
        for use, what in file.escapes.items():
            if (answer := answers.found.get(use.question)) and answer.is_module and (
                    needed.is_reached(file, use)):
                escaped.setdefault(use.place, Finding(
                    'W203', use.place, use.question.path, use.written, f'{use.written} {what}',
                    'unknown'))
        verdicts.update(one.verdict for one in escaped.values())
        findings.update(dict.fromkeys(escaped.values()))
    return Judged(list(findings), dict(verdicts),
                  {file.path: needed.flags_of(file) for file in files})


def _by_place(uses: Sequence[Use]) -> Iterator[list[Use]]:
    """Yields what one place may mean."""
    found: dict[Place, list[Use]] = {}
    for use in uses:
        found.setdefault(use.place, []).append(use)
    yield from found.values()


def _chosen(uses: Sequence[Use], answers: Mapping[Question, Answer]) -> Iterator[Use]:
    """Yields all uses; those are guarded of which a test may choose another that is there."""
    for several in _by_place(uses):
        has_one = any(use.question in answers and answers[use.question].run for use in several)
        for use in several:
            yield use._replace(is_guarded=True) if (
                has_one and use.is_choice and use.question in answers
                and not answers[use.question].run) else use


def _reasons(file: ScannedFile, answers: Answers, needed: Needed
             ) -> Iterator[tuple[Use, reasons.Reason]]:
    """Yields what becomes of each meaning of each name of a file."""
    for several in _by_place(file.uses):
        # If none is reached, all are told. Otherwise the name means something else.
        meant = [use for use in several if needed.is_reached(file, use)] or several
        found = [(use, _reason(file, use, answers.found.get(use.question), answers.reason, needed))
                 for use in meant]
        there = next((use for use, reason in found
                      if not reason.code or reason.code[0] != 'E'), None)
        for use, reason in found:
            if there is not None and reason.code.startswith('E'):
                reason = reasons.Reason('W201', 'unknown', f'{use.question.path} is not there, and '
                                        f'{there.question.path} is: nobody can tell which is meant')
            yield use, reason


def _reason(file: ScannedFile, use: Use, answer: Answer | None, why_unknown: str,
            needed: Needed) -> reasons.Reason:
    """Returns what becomes of a name in a program that may be prepared, or need flags for others.
    """
    reason = reasons.reason_of(use.question, answer, why_unknown)
    if answer is None or reason.code == 'E104':
        return reason
    if use.is_guarded or not needed.is_reached(file, use):
        if answer.run or answer.python:
            return reasons.Reason('', 'there') if answer.python else reason
        hint = _HINT.get(reason.verdict, reason.message)
        return reasons.Reason('I305', reason.verdict,
                              f'it is missing, and the program is prepared for that; {hint}')
    if other := needed.contradiction(file, use):
        first = f'{other.written} ({other.place.path}:{other.place.line})'
        return reasons.Reason('E105', 'lost', f'it is there without --tf1 only, and the program '
                              f'needs --tf1 for {first}' if answer.run else
                              f'it is there with --tf1 only, and with it {first} is not')
    return reason


def _is_no_import(use: Use) -> bool:
    """Whether a name is used whose import is a finding already, if its package is missing."""
    return bool(use.question.names) and not use.question.is_import


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
    tf1, tf2, contrib, are_of_today = zip(*parts)
    joined = itertools.chain.from_iterable
    return _Needs(tuple(joined(tf1)), tuple(joined(tf2)), tuple(joined(contrib)), any(are_of_today))


def _flags_for(needs: _Needs) -> Flags:
    """Decides between names that `--tf1` brings and those that it hides: the fewer are lost."""
    if needs.tf1:
        brought, hidden = ({use.question for use in uses
                            if libraries.top(use.question) == 'tensorflow'}
                           for uses in (needs.tf1, needs.tf2))
        return Flags(needs.tf1 if len(brought) >= len(hidden) else (), needs.contrib)
    is_old = needs.contrib and not needs.tf2 and not needs.is_of_today
    return Flags(needs.contrib if is_old else (), needs.contrib)
