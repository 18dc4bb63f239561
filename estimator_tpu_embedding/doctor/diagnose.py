"""Makes the diagnosis of files and folders, from finding them to the command that runs them."""

from __future__ import annotations

import collections
import os
from collections.abc import Mapping, Sequence

from ..errors import counted
from . import command, environment, oracle, scan, sources, traps, verdicts
from .facts import Diagnosis, Finding, ScannedFile
from .ignores import Settings, is_ignored, selected


def diagnose(paths: Sequence[str], settings: Settings = Settings(),
             deadline: float = oracle.DEADLINE) -> Diagnosis:
    """Returns what the doctor has to say about code, none of which is run.

    Files that the settings exclude are scanned all the same, since others import them; nothing is
    said about them.

    Args:
      paths: of files and folders.
      settings: which codes count, and which files are left out.
      deadline: seconds in which the installed libraries must answer.
    """
    found = sources.find(paths)
    files = scan.scan(found)
    _choose_program(files, paths)
    kept = [file for file in files if not settings.excludes(file.path)]
    answers = oracle.ask([one for file in files for use in (*file.uses, *file.escapes)
                          for one in use.questions],
                         paths, deadline)
    judged = verdicts.judge(files, answers)
    lines, conflicts = environment.describe()
    by_path = {file.path: file for file in files}
    excluded = by_path.keys() - {file.path for file in kept}
    about = dict.fromkeys(finding for finding in (
        *judged.findings, *traps.findings_of(files, judged.flags),
        *(each for file in files for each in (*file.unknown, *file.problems)), *conflicts,
        *found.problems) if finding.place is None or finding.place.path not in excluded)
    wanted = [finding for finding in sorted(about, key=_order)
              if selected(finding.code, ('',), settings.ignore)
              and not is_ignored(finding, finding.place and by_path.get(finding.place.path))]
    shown = [finding for finding in wanted if selected(finding.code, settings.select, ())]
    ignored = collections.Counter(finding.code for finding in about.keys() - set(shown))
    return Diagnosis(
        lines, shown,
        [one for one in command.prescriptions(files, wanted, judged.flags)
         if one.path not in excluded],
        _verdicts(kept, judged if len(kept) == len(files) else verdicts.judge(kept, answers)),
        sum(not _is_unread(file) for file in kept), sum(file.lines for file in kept),
        dict(sorted(ignored.items())),
        [*found.left_out, *_excluded(len(files) - len(kept), settings)])


def _choose_program(files: Sequence[ScannedFile], paths: Sequence[str]) -> None:
    """Takes the files that the user named for programs, if nothing else is one."""
    if not any(file.is_program for file in files):
        named = {os.path.abspath(path) for path in paths}
        for file in files:
            file.is_program = os.path.abspath(file.path) in named


def _order(finding: Finding) -> tuple[object, ...]:
    """By file, place and code; those about the environment come first."""
    place = finding.place
    if place is None:
        return '', 0, 0, 0, finding.code, finding.subject, finding.message
    return (place.path, place.cell, place.line, place.column, finding.code, finding.subject,
            finding.message)


def _verdicts(files: Sequence[ScannedFile], judged: verdicts.Judged) -> Mapping[str, int]:
    """How many uses have each verdict, also those that no library was asked about."""
    return collections.Counter(judged.verdicts) + collections.Counter(
        finding.verdict for file in files for finding in file.unknown)


def _is_unread(file: ScannedFile) -> bool:
    return any(problem.code == 'E132' for problem in file.problems)


def _excluded(number: int, settings: Settings) -> list[tuple[str, str]]:
    if not number:
        return []
    return [(' '.join(settings.exclude), f'{counted(number, "file")} that exclude of [etpe] names; '
             'they were read for what others import from them')]
