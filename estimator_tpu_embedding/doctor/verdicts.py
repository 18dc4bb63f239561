"""Judges every name, and finds which flags of `etpe run` each program needs.

Reasons come from the tables that the hints of `etpe run` use, and of Python from `successors`.
A program that uses `tensorflow.contrib` was written for TensorFlow 1. So it gets `--tf1` too,
unless a name shows that somebody has carried it to TensorFlow 2.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from ..compat import old_names, tf1
from . import libraries, successors
from .findings import (
    FALLBACK,
    STARRED,
    TESTED,
    TRIED,
    Answer,
    Finding,
    Place,
    Question,
    ScannedFile,
    Use,
)
from .oracle import Answers
from .project import Reached

_OF_TODAY = re.compile(r'tensorflow\.compat\.v[12](\.|$)')
_OLD_PATH = re.compile(  # As in contrib.tpu.python.tpu.tpu_config.TPUConfig.
    r'(?<=contrib)(?P<area>\.\w+)\.python\.(?:\w+\.){1,2}(?=\w+$)')

_CHANGED = {'numpy.bool': 'bool', 'numpy.long': 'int'}


class Flags(NamedTuple):
    """The uses of a program that need flags of `etpe run`, in order."""

    tf1: tuple[Use, ...] = ()
    contrib: tuple[Use, ...] = ()


class _Needs(NamedTuple):
    """The uses of one file, or of several, by what they need."""

    tf1: tuple[Use, ...]  # Found with `--tf1` only.
    tf2: tuple[Use, ...]  # Found without `--tf1` only.
    contrib: tuple[Use, ...]  # Of `tf.contrib`, also if `--contrib` lacks them.
    is_of_today: bool  # A name says that the file was made for TensorFlow 2.


class Needed:
    """What each program needs with the files that it imports; `flags` are by its path.

    Guarded names force no flag. Flags that others force decide which handlers are reached.
    """

    def __init__(self, files: Sequence[ScannedFile], answers: Mapping[Question, Answer]):
        self.flags: dict[str, Flags] = {}
        self._answers = answers
        there = {one for one, answer in answers.items() if answer.run}
        needs_of = {file.path: _needs_of(file, answers, there) for file in files}
        self._there: dict[frozenset[tuple[bool, bool]], set[Question]] = {}
        self._worlds: dict[str, dict[tuple[bool, bool], None]] = collections.defaultdict(dict)
        self._programs_of: dict[str, dict[tuple[frozenset[Use], Use], None]] = (
            collections.defaultdict(dict))
        for group in Reached(files).groups():
            needs = _sum(needs_of[file.path] for file in group)
            flags = self.flags[group[0].path] = _flags_for(needs)
            lacking, other = (needs.tf2, needs.tf1) if flags.tf1 else (needs.tf1, needs.tf2)
            for file in group:
                self._worlds[file.path][bool(flags.tf1), bool(flags.contrib)] = None
                if lacking and other:
                    self._programs_of[file.path][frozenset(lacking), other[0]] = None

    def uses_of(self, file: ScannedFile) -> list[Use]:
        """Returns what programs may look up in a file, as `settled` does."""
        worlds = frozenset(self._worlds[file.path])
        if worlds not in self._there:
            self._there[worlds] = {one for one, answer in self._answers.items()
                                   if all(_is_there(answer, *world) for world in worlds)}
        return settled(file.uses, self._answers, self._there[worlds])

    def contradiction(self, file: ScannedFile, use: Use) -> Use | None:
        """Returns a name that is not there when `use` is, in some program that needs both.

        There is one only if that program is to be run without what `use` needs.
        """
        return next((other for lacking, other in self._programs_of.get(file.path, ())
                     if use in lacking), None)


class Judged(NamedTuple):
    """What became of all names."""

    findings: Sequence[Finding]  # In no particular order, without repetitions.
    verdicts: Mapping[str, int]  # Uses that were looked up, by `VERDICTS`.
    flags: Mapping[str, Flags]  # By path of a program, what it needs with all that it imports.


def judge(files: Sequence[ScannedFile], answers: Answers) -> Judged:
    """Judges all uses of all files of the project, by what the libraries said of each."""
    needed = Needed(files, answers.found)
    findings: dict[Finding, None] = {}
    verdicts: collections.Counter[str] = collections.Counter()
    for file in files:
        for use, reason in _reasons(file, answers, needed):
            answer = answers.found.get(use.question)
            if answer is None or answer.is_examined or reason.code:
                verdicts[reason.verdict] += 1
            is_of_import = use.question.is_import or not use.question.names
            if reason.code and (reason.code != 'E111' or is_of_import):  # Once per import.
                subject = use.question.path.removeprefix('builtins.')
                findings[Finding(reason.code, use.place, subject, use.written, reason.message,
                                 reason.verdict)] = None
        escaped: dict[Place, Finding] = {}  # A name may mean several modules.
        for use in file.escapes:
            if (answer := answers.found.get(use.question)) and answer.is_module:
                escaped.setdefault(use.place, Finding(
                    'W203', use.place, use.question.path, use.written,
                    f'{use.written} escapes here: what is asked of it there was not checked',
                    'unknown'))
        verdicts.update(one.verdict for one in escaped.values())
        findings.update(dict.fromkeys(escaped.values()))
    return Judged(list(findings), dict(verdicts), needed.flags)


def settled(uses: Sequence[Use], answers: Mapping[Question, Answer], there: Set[Question]
            ) -> list[Use]:
    """Returns uses with the last word on what is guarded, without meanings that no run has.

    A missing name is guarded in a handler whose body lacks nothing, in the `else` of one that
    lacks something, and where a test or a `try` chose another meaning that is there. A name without
    an answer excuses nothing.
    """
    failed = {use.attempt for use in uses if use.question not in there}
    result: list[Use] = []
    for several in _by_place(uses):
        has_one = any(use.question in there for use in several)
        has_other = has_one or any(use.has_other for use in several)
        has_succeeded = any(use.question in there or _has_succeeded(use, answers)
                            for use in several if use.choice == TRIED)
        for use in several:
            is_missing = use.question in answers and use.question not in there
            if use.choice == FALLBACK and (has_succeeded or is_missing and has_one) or (
                    use.choice == STARRED and is_missing
                    and _is_starless(use.question, answers[use.question])):
                continue
            is_guarded = is_missing and (
                has_other and use.choice in (TRIED, FALLBACK, TESTED) and not has_succeeded
                or any((abs(one) in failed) is not (one > 0) for one in use.fallbacks))
            result.append(use._replace(is_guarded=True) if is_guarded else use)
    return result


def _has_succeeded(use: Use, answers: Mapping[Question, Answer]) -> bool:
    """Whether the import or look-up in a `try` succeeded whose result lacks a name."""
    lacking = answers[use.question].lacking if use.question in answers else ''
    return bool(lacking and use.chosen) and not f'{use.chosen}.'.startswith(f'{lacking}.')


def _is_starless(question: Question, answer: Answer) -> bool:
    """Whether `from a import *` did not bring the name that a question begins with."""
    name = f'{question.module}.{question.names.partition(".")[0]}'
    return f'{name}.'.startswith(f'{answer.lacking}.')


def _by_place(uses: Sequence[Use]) -> Iterable[list[Use]]:
    found: dict[Place, list[Use]] = {}
    for use in uses:
        found.setdefault(use.place, []).append(use)
    return found.values()


def _reasons(file: ScannedFile, answers: Answers, needed: Needed
             ) -> Iterator[tuple[Use, Reason]]:
    """Yields what becomes of each meaning of each name of a file."""
    for several in _by_place(needed.uses_of(file)):
        found = [(use, _reason(file, use, answers.found.get(use.question), answers.reason, needed))
                 for use in several]
        there = next((use for use, reason in found
                      if not reason.code or reason.code[0] != 'E'), None)
        for use, reason in found:
            if there is not None and reason.code.startswith('E'):
                reason = Reason('W201', 'unknown', f'{use.question.path} is not there, and '
                                f'{there.question.path} is: nobody can tell which is meant')
            yield use, reason


def _reason(file: ScannedFile, use: Use, answer: Answer | None, why_unknown: str,
            needed: Needed) -> Reason:
    """Returns what becomes of a name in a program that may be prepared, or need other flags."""
    reason = reason_of(use.question, answer, why_unknown)
    if answer is None or reason.code == 'E104':
        return reason
    if use.is_guarded:
        if answer.run or answer.python:
            return Reason('', 'there') if answer.python else reason
        return Reason('I305', reason.verdict,
                      f'it is missing, and the program is prepared for that; {reason.message}')
    if other := needed.contradiction(file, use):
        first = f'{other.written} ({other.place.path}:{other.place.line})'
        return Reason('E105', 'lost', f'it is there without --tf1 only, and the program '
                      f'needs --tf1 for {first}' if answer.run else
                      f'it is there with --tf1 only, and with it {first} is not')
    return reason


def _is_there(answer: Answer, tf1: bool, contrib: bool) -> bool:
    if contrib and answer.contrib and not (answer.run or answer.tf1):
        return True
    return answer.tf1 if tf1 else answer.run


def _needs_of(file: ScannedFile, answers: Mapping[Question, Answer], there: Set[Question]
              ) -> _Needs:
    known = [(use, answers[use.question])
             for use in settled(file.uses, answers, there)
             if not use.is_guarded and use.question in answers]
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


class Reason(NamedTuple):
    """What becomes of a name: the parts of a `Finding`, with no code if there is nothing to say."""

    code: str
    verdict: str
    message: str = ''


def reason_of(question: Question, answer: Answer | None, why_unknown: str = '') -> Reason:
    """Returns what becomes of a name, whatever other names the program uses.

    Without an answer of the libraries, `why_unknown` says why there is none.
    """
    if answer is None:
        return Reason('W201', 'unknown', f'nobody could be asked about it: {why_unknown}')
    if answer.refused:
        return Reason('E104', 'lost', f'it can be imported, and raises when it is used: '
                      f'{answer.refused}')
    if answer.run:
        if answer.python:
            old = _CHANGED.get(question.path)
            return Reason('W219', 'there', f'it was the type {old} of Python, and is a type of '
                          f'NumPy today: write {old} if that is meant') if old else Reason(
                '', 'there')
        if libraries.top(question) not in libraries.OF_TENSORFLOW:
            return Reason('I301', 'restored', f'{_owner(libraries.top(question))} lacks it: etpe '
                          'run restores it, and install(old_python=True) in a library')
        return Reason('I304', 'restored', 'it is there with Keras 2 only, which etpe run selects'
                      ) if answer.keras2 else Reason(
            'I301', 'restored', 'TensorFlow lacks it, and etpe run restores it')
    if answer.tf1:
        return Reason('I302', 'tf1', 'it is a name of TensorFlow 1: etpe run --tf1 restores it')
    if answer.contrib:
        return Reason('I303', 'contrib', 'etpe run --contrib restores it')
    if answer.python:
        return Reason('E105', 'lost', 'Keras 3 has it, and Keras 2, which etpe run selects, lacks '
                      'it: plain python runs what needs nothing of etpe run')
    return _missing(question, answer)


def _missing(question: Question, answer: Answer) -> Reason:
    """Returns why no world has a name."""
    package, path = libraries.top(question), question.path
    is_import_lacking = answer.lacking == question.module or (
        question.module.startswith(f'{answer.lacking}.'))
    if package in ('tensorflow', 'tensorflow_core'):
        return _lost_in_tensorflow(path, answer)
    if successors.was_in_python(question) and is_import_lacking:
        instead = successors.instead_of(question)
        return Reason('E123', 'moved' if instead else 'lost',
                      f'Python has no module {answer.lacking} any more' + _use(instead))
    if package in libraries.PYTHON and is_import_lacking and answer.lacking == package:
        return Reason('E123', 'lost', f'this Python has no module {package} on this system')
    if answer.lacking == package or not answer.is_examined:
        name = successors.package_of(path)
        return Reason('E111', 'package', f'no installed package has the module {answer.lacking}'
                      + successors.made_by(answer.lacking) + '; '
                      + (f'pip install {name}' if name else 'it is no file of the project either, '
                         'as far as that was scanned; if it lies in a package, import it from '
                         'there'))
    instead = successors.instead_of(question)
    code = ('E121' if package == 'numpy' else 'E113' if package in libraries.OF_TENSORFLOW
            or package not in libraries.PYTHON else 'E122')
    return Reason(code, 'moved' if instead else 'lost', f'{_owner(package)} has no '
                  f'{_shown(answer.lacking)}' + _use(instead))


def _lost_in_tensorflow(path: str, answer: Answer) -> Reason:
    """Returns why no TensorFlow that etpe run can give has a name, by the tables of `compat`."""
    if found := libraries.in_contrib(path):
        if not found['name']:
            return Reason('E103', 'lost', tf1.NO_CONTRIB)
        missing = old_names.missing_in_contrib(_OLD_PATH.sub(r'\g<area>.', path))
        return Reason('E103', 'lost', missing.replace('install(contrib=True)',
                                                      'etpe run --contrib'))
    if today := old_names.advice(path):
        return Reason('E102', 'moved', today)
    rule = old_names.rule_of(path) or old_names.rule_of(path.replace('tensorflow', 'tf', 1))
    if rule is not None and rule.fate == 'gone':
        return Reason('E101', 'lost', f'the installed TensorFlow lacks it: {rule.note}')
    name = path.removeprefix('tensorflow.').partition('.')[0]
    use = old_names.before_1_15().get(name)
    if path.count('.') >= 1 and use and answer.lacking == f'tensorflow.{name}':
        return Reason('E101', 'moved', f'it is older than TensorFlow 1.15{_use(use)}')
    return Reason('E101', 'lost', f'neither the installed TensorFlow nor etpe run, with any flag, '
                  f'has {_shown(answer.lacking)}')


def _owner(package: str) -> str:
    return {'builtins': 'Python', 'numpy': 'the installed NumPy'}.get(
        package, f'the installed {package}' if package not in libraries.PYTHON else 'Python')


def _shown(path: str) -> str:
    return path.removeprefix('builtins.')


def _use(instead: str) -> str:
    return f'; use {_shown(instead)}' if instead else ''
