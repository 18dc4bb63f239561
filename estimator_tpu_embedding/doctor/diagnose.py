"""Makes the diagnosis of files and folders, from finding them to the command that runs them."""

from __future__ import annotations

import collections
import os
from collections.abc import Sequence

from . import command, environment, oracle, scan, sources, traps, verdicts
from .facts import Diagnosis, Finding, ScannedFile


def diagnose(paths: Sequence[str], select: Sequence[str] = ('',), ignore: Sequence[str] = ()
             ) -> Diagnosis:
    """Returns what the doctor has to say about code, none of which is run.

    Args:
      paths: of files and folders.
      select: beginnings of the codes that are reported.
      ignore: beginnings of the codes that are not, and that stop no program.
    """
    found = sources.find(paths)
    files = scan.scan(found)
    _choose_program(files, paths)
    answers = oracle.ask([one for file in files for use in (*file.uses, *file.escapes)
                          for one in use.questions], paths)
    judged = verdicts.judge(files, answers)
    lines, conflicts = environment.describe()
    about = dict.fromkeys((
        *judged.findings, *traps.findings_of(files, judged.flags),
        *(each for file in files for each in (*file.unknown, *file.problems)), *conflicts,
        *found.problems))
    wanted = [finding for finding in sorted(about, key=_order)
              if not finding.code.startswith(tuple(ignore))]
    shown = [finding for finding in wanted if finding.code.startswith(tuple(select))]
    ignored = collections.Counter(finding.code for finding in about.keys() - set(shown))
    return Diagnosis(
        lines, shown, command.prescriptions(files, wanted, judged.flags),
        # Also of names that no library was asked about.
        collections.Counter(judged.verdicts) + collections.Counter(
            finding.verdict for file in files for finding in file.unknown),
        sum('E132' not in {one.code for one in file.problems} for file in files),
        sum(file.lines for file in files), dict(sorted(ignored.items())), [*found.left_out])


def _choose_program(files: Sequence[ScannedFile], paths: Sequence[str]) -> None:
    """Takes the files that the user named for programs, if nothing else is one."""
    if not any(file.is_program for file in files):
        named = {os.path.abspath(path) for path in paths}
        for file in files:
            file.is_program = os.path.abspath(file.path) in named


def _order(finding: Finding) -> tuple[object, ...]:
    """By file, place and code; those about the environment come first."""
    path, line, column, _, _, cell = finding.place or ('', 0, 0, 0, 0, 0)
    return path, cell, line, column, finding.code, finding.subject, finding.message
