"""Writes the `etpe run` line of each program, with a reason per flag and what stops it first."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from ..errors import counted
from .facts import MOST_STOPS, Finding, Prescription, ScannedFile, Use
from .reached import Reached
from .traps import options_of
from .values import Linked
from .verdicts import Flags

_RESTORED = frozenset({'I301', 'I304', 'I311'})
"""What needs `etpe run`, whatever its flags are."""


def prescriptions(files: Sequence[ScannedFile], findings: Sequence[Finding],
                  flags: Mapping[str, Flags]) -> list[Prescription]:
    """Returns how to run each program of the project.

    Args:
      files: all that were scanned.
      findings: all findings about them that are selected.
      flags: by path of each file, what it needs with all files that it imports.
    """
    reached = Reached(files)
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.place is not None:
            by_path.setdefault(finding.place.path, []).append(finding)
    return [_prescription(file, reached, by_path, flags.get(file.path, Flags()))
            for file in files if file.is_program]


def _prescription(file: ScannedFile, reached: Reached, by_path: Mapping[str, Sequence[Finding]],
                  flags: Flags) -> Prescription:
    group = Linked(reached.files_of(file))
    stops = reached.stops_of(file, by_path)[:MOST_STOPS]
    findings = [each for one in group.files for each in by_path.get(one.path, ())]
    if _runs_without(findings, flags, stops):
        words = ['python']
        reasons = [f'python, not etpe run: nothing needs etpe here, and {stops[0].written} (line '
                   f'{stops[0].place and stops[0].place.line}) needs Keras 3']
        stops = []
    else:
        words, reasons = _run(group, flags, findings)
    folder, module, reason = reached.as_module(file)
    if module:
        words += ['-m', module]
        reasons.append(f'-m {module}: {reason}')
    else:
        words.append(shlex.quote(file.path))
    for option, value, reason in _required(file, group):
        words.append(f'{option}={value}' if option.startswith('--') else value)
        reasons.append(reason)
    command = ' '.join(words)
    if folder:
        command = f'cd {shlex.quote(folder)} && {command}'
    return Prescription(file.path, command, reasons, stops)


def _run(group: Linked, flags: Flags, findings: Sequence[Finding]
         ) -> tuple[list[str], list[str]]:
    """Returns `etpe run` with the options that files need, and why."""
    words, reasons = ['etpe', 'run'], []
    old = next((each for each in findings if each.code == 'W218'), None)
    if old is not None and old.place is not None and not flags.tf1:
        words.append('--tf1')
        reasons.append(f'--tf1: {old.subject} ({old.place.path}:{old.place.line})')
    for option, uses in (('--tf1', flags.tf1), ('--contrib', flags.contrib)):
        if uses:
            words.append(option)
            reasons.append(f'{option}: {_named(uses)}')
    options, reason = options_of(group)
    return [*words, *options.split()], [*reasons, *filter(None, [reason])]


def _runs_without(findings: Sequence[Finding], flags: Flags, stops: Sequence[Finding]) -> bool:
    """Whether a program runs with plain Python, and with `etpe run` not.

    Without `--tf1` and `--contrib`, a name contradicts `etpe run` (E105) because Keras 3 has it.
    """
    return (bool(stops) and all(each.code == 'E105' for each in findings if each.code[0] == 'E')
            and not flags.tf1 and not flags.contrib
            and not any(each.code in _RESTORED for each in findings))


def _named(uses: Sequence[Use]) -> str:
    """Names the first use, and the number of other names: `tf.Session (line 3) and 2 others`."""
    first = uses[0]
    others = len({use.question.path for use in uses} - {first.question.path})
    return f'{first.written} ({first.place.path}:{first.place.line})' + (
        f' and {counted(others, "other name")}' if others else '')


def _required(file: ScannedFile, group: Linked) -> Iterator[tuple[str, str, str]]:
    """Yields option, value and reason of each argument without which the program ends."""
    marked = {name for fact in group.facts('required') for name in fact.values['names']}
    own = file.facts if not any(fact.kind == 'subparsers' for fact in file.facts) else []
    absl = [fact for fact in group.facts('flag') if fact.values['library'] == 'absl']
    of_parser = [fact for fact in own if fact.kind == 'flag'
                 and fact.values['library'] == 'argparse']
    seen = set()
    for fact in (*absl, *of_parser):
        name, option = str(fact.values['name']), str(fact.values['option'])
        is_marked = fact.values['library'] == 'absl' and name in marked
        if option in seen or not (fact.values['is_required'] or is_marked):
            continue
        seen.add(option)
        yield option, name.upper(), (f'{option}: the program requires it '
                                     f'({fact.place.path}:{fact.place.line})')
