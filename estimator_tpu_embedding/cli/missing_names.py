"""Says what the doctor knows of a name whose lack ended a program of `etpe run`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ..doctor.facts import Finding
from ..errors import counted, shown

DEADLINE = 20.
"""Seconds in which the installed libraries must answer. Otherwise nothing is said."""


def remarks(error: BaseException, path: str, *, tf1: bool, contrib: bool) -> list[str]:
    """Returns lines about a missing name, and about others that the same program would meet.

    Nothing is said of errors of another kind, or of a name that the doctor has no answer about.
    What the program did to this process changes nothing, since other processes are asked.

    Args:
      error: the error that ended the program.
      path: of the program.
      tf1: whether it ran with `--tf1`.
      contrib: whether it ran with `--contrib`.
    """
    name = _missing(error)
    if not name:
        return []
    with contextlib.suppress(Exception, KeyboardInterrupt):
        from ..doctor.diagnose import diagnose
        found = diagnose([path], deadline=DEADLINE).findings
        return list(_lines(name, _lines_of(error), path, [one for one in found if _is_missing(
            one, tf1, contrib)]))
    return []


def _missing(error: BaseException) -> str:
    """Returns the last part of the name that was not found; `''` for other errors."""
    from ..compat import hints
    from ..doctor import successors
    if isinstance(error, NameError) and f'builtins.{error.name}' in successors.NAMES:
        return str(error.name)
    return hints.missing_name(error).rpartition('.')[2]


def _lines_of(error: BaseException) -> set[tuple[str, int]]:
    """Returns the file and line of each frame of an error."""
    found, traceback = set(), error.__traceback__
    while traceback is not None:
        found.add((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    return found


def _is_missing(finding: Finding, tf1: bool, contrib: bool) -> bool:
    """Whether a finding is about a name that is not there with these flags."""
    return bool(finding.verdict) and (
        finding.code.startswith('E') or finding.code == 'I302' and not tf1
        or finding.code == 'I303' and not contrib)


def _lines(name: str, places: set[tuple[str, int]], path: str, missing: Sequence[Finding]
           ) -> Iterator[str]:
    own = min((one for one in missing if name in one.subject.split('.')), default=None,
              key=lambda one: one.place is None or (one.place.path, one.place.line) not in places)
    if own is None:  # The libraries did not answer in time, or the scan could not see the name.
        return
    yield f'etpe doctor: {own.code} {own.subject}: {shown(own.message, 500)}'
    others = {one.subject: one for one in missing if one.subject != own.subject}
    lost = sum(one.code.startswith('E') for one in others.values())
    yield (f'etpe doctor: the program would meet {counted(len(others), "other missing name")}'
           + f', {lost} of them whatever the flags are' * bool(lost)
           + f'; "etpe doctor {path}" names all' * bool(others))
