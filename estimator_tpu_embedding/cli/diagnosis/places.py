"""Says where something is, and sums findings up, as all forms of a diagnosis do."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...doctor.facts import Finding, Place
from ..report import printable

_MOST_PATH = 200


class Group(NamedTuple):
    """Findings with the same code about the same name.

    Attributes:
      first: the first of them.
      number: how many there are.
    """

    first: Finding
    number: int


def where(place: Place | None) -> str:
    """Returns `path:line:column`, with the cell of a notebook, fit to be printed.

    >>> where(Place('job.ipynb', 3, 5, cell=2))
    'job.ipynb[code cell 2]:3:5'
    """
    if place is None:
        return 'environment'
    cell = f'[code cell {place.cell}]' if place.cell else ''
    return f'{printable(place.path, _MOST_PATH)}{cell}:{place.line}:{place.column}'


def grouped(findings: Iterable[Finding]) -> list[Group]:
    """Returns findings by code and name: the codes in order, the most frequent names first."""
    found: dict[tuple[str, str], list[Finding]] = collections.defaultdict(list)
    for finding in findings:
        found[finding.code, finding.subject].append(finding)
    return sorted((Group(several[0], len(several)) for several in found.values()),
                  key=lambda group: (group.first.code, -group.number, group.first.subject))


def of_severity(findings: Iterable[Finding], letters: str) -> Sequence[Finding]:
    """Returns the findings whose codes begin with one of the letters `E`, `W` and `I`."""
    return [finding for finding in findings if finding.code[0] in letters]
