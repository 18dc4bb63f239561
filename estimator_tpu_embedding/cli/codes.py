"""Reads the title of every code, and the page of the documents that treats it.

An error itself holds the rule, what came and the remedy. `docs/errors.md` has a part for each page,
with a table of codes. `tests/cli/codes_test.py` keeps it complete: the sources use each code that
is there, and no other.
"""

from __future__ import annotations

import argparse
import re
from typing import NamedTuple

from ..errors import did_you_mean
from .etpe_docs import topics

SEVERITIES = {'E': 'error', 'W': 'warning', 'I': 'information'}


class Entry(NamedTuple):
    """What is known of a code."""

    title: str  # A few words.
    topic: str  # Of `etpe docs`.


def _read() -> dict[str, Entry]:
    topic, found = '', {}
    for line in topics()['errors'].read_text('utf-8').splitlines():
        if heading := re.match(r'## \[.+\]\((.+)\.md\)', line):
            topic = heading[1]
        elif row := re.match(r'\| ([EWI]\d{3}) \| (.+) \|', line):
            found[row[1]] = Entry(row[2], topic)
    return dict(sorted(found.items()))


ENTRIES = _read()


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Adds `--select` and `--ignore`: tuples of beginnings of codes. Without them all count."""
    parser.add_argument('--select', metavar='CODES', type=_argument, default=('',),
                        help='only these: codes or their beginnings, such as W4,E41')
    parser.add_argument('--ignore', metavar='CODES', type=_argument, default=(),
                        help='all but these')


def _argument(text: str) -> tuple[str, ...]:
    found = tuple(part.strip().upper() for part in text.split(','))
    for prefix in found:
        if not prefix or not any(code.startswith(prefix) for code in ENTRIES):
            raise argparse.ArgumentTypeError(
                f'no code begins with {prefix[:20]!r}.  {did_you_mean(prefix, ENTRIES)}'.rstrip())
    return found
