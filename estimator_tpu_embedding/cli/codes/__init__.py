"""All codes of errors and warnings: what each means and what to do.

`tests/cli/codes_test.py` keeps this complete: an entry for every code in the sources, and no
other.
"""

from __future__ import annotations

import difflib
import itertools

from . import checkpoints, config, doubts, reading, run, tf2

Entry = tuple[str, str, str]
"""Title, what it means, what to do."""

ENTRIES: dict[str, Entry] = dict(sorted({
    **checkpoints.ENTRIES, **config.ENTRIES, **doubts.ENTRIES, **reading.ENTRIES,
    **run.ENTRIES, **tf2.ENTRIES}.items()))


def nearest(text: str) -> str:
    """The code that begins most like `text`, for a message about one that is unknown.

    >>> nearest('e4123')
    'E412'
    """
    def likeness(code: str) -> tuple[int, float]:
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(code, text.upper()))
        return len(list(same)), difflib.SequenceMatcher(None, code, text.upper()).ratio()

    return max(ENTRIES, key=likeness)
