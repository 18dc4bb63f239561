"""`etpe explain`: prints the meaning and the remedy of one code.

JSON: `code`, `severity`, `title`, `meaning`, `remedy`; for codes of `etpe doctor` also `before` and
`after`, an example.
"""

from __future__ import annotations

import argparse

from .codes import ENTRIES, nearest
from .codes.examples import EXAMPLES
from .report import Block, Line, Report, Source, as_command
from .rules import SEVERITIES


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = 'Says what a code means and what to do about it.'
    parser.add_argument('code', metavar='CODE', type=_code, help='such as E412; etpe rules '
                        'lists all')
    as_command(parser, _report)


def _code(text: str) -> str:
    if text.upper() not in ENTRIES:
        raise argparse.ArgumentTypeError(
            f'unknown code {text[:20]!r}; did you mean {nearest(text[:20])}?')
    return text.upper()


def _report(parsed: argparse.Namespace) -> Report:
    title, meaning, remedy = ENTRIES[parsed.code]
    severity = SEVERITIES[parsed.code[0]]
    example = dict(zip(('before', 'after'), EXAMPLES.get(parsed.code, ())))
    blocks: list[Block] = [
        Line(f'{parsed.code} ({severity}): {title}', 'head'), Line(meaning), Line(remedy)]
    for when, code in example.items():
        blocks += [Line(f'{when.capitalize()}:'), Source(f'{code}\n', 'python')]
    return Report(blocks, {'code': parsed.code, 'severity': severity, 'title': title,
                           'meaning': meaning, 'remedy': remedy, **example})
