"""Chooses codes by their beginnings: `--select` and `--ignore` of commands that print findings."""

from __future__ import annotations

import argparse

from .codes import ENTRIES, nearest


def add_to(parser: argparse.ArgumentParser) -> None:
    """Adds both arguments, which are tuples of beginnings; without them all codes are selected."""
    parser.add_argument('--select', metavar='CODES', type=_argument, default=('',),
                        help='only these: codes or their beginnings, such as W4,E41')
    parser.add_argument('--ignore', metavar='CODES', type=_argument, default=(),
                        help='all but these')


def _argument(text: str) -> tuple[str, ...]:
    found = tuple(part.strip().upper() for part in text.split(','))
    for prefix in found:
        if not prefix or not any(code.startswith(prefix) for code in ENTRIES):
            raise argparse.ArgumentTypeError(f'no code begins with {prefix[:20]!r}; did you mean '
                                             f'{nearest(prefix[:20])}?')
    return found
