"""Holds the title, the meaning and a remedy of every code.

`etpe explain` and `etpe rules` print them. `tests/cli/codes_test.py` keeps the list complete: the
sources use each code that is here, and no other.
"""

from __future__ import annotations

import difflib
import itertools

from . import (
    agreement,
    checkpoints,
    cluster,
    config,
    doctor,
    doubts,
    migration,
    reading,
    rows,
    run,
    sources,
    tf2,
)

Entry = tuple[str, str, str]
"""Title, meaning and remedy."""

ENTRIES: dict[str, Entry] = dict(sorted({
    **agreement.ENTRIES, **checkpoints.ENTRIES, **cluster.ENTRIES, **config.ENTRIES,
    **doctor.ENTRIES, **doubts.ENTRIES, **migration.ENTRIES, **reading.ENTRIES, **rows.ENTRIES,
    **run.ENTRIES, **sources.ENTRIES, **tf2.ENTRIES}.items()))


def nearest(text: str) -> str:
    """Returns the code most similar to `text`, for the message about an unknown code.

    >>> nearest('e4123')
    'E412'
    """
    def likeness(code: str) -> tuple[int, float]:
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(code, text.upper()))
        return len(list(same)), difflib.SequenceMatcher(None, code, text.upper()).ratio()

    return max(ENTRIES, key=likeness)
