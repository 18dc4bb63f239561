"""Judges every name: which flag, package or other name helps, or why nothing does."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from . import flags, reasons
from .facts import Answer, Finding, Place, Question, ScannedFile, Use
from .flags import Flags
from .oracle import Answers

_HINT = {'tf1': 'with --tf1 it is there', 'contrib': 'with --contrib it is there'}


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
    needed = flags.Project(files, answers.found)
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


def _reasons(file: ScannedFile, answers: Answers, needed: flags.Project
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
            needed: flags.Project) -> reasons.Reason:
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
