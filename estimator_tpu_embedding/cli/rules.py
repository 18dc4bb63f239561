"""`etpe rules`: lists the codes of all errors, warnings and information.

JSON: `"rules"`, a list of objects with `code`, `severity` and `title`.
"""

from __future__ import annotations

import argparse

from .codes import ENTRIES
from .report import Grid, Report, as_command

SEVERITIES = {'E': 'error', 'W': 'warning', 'I': 'information'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = 'Lists all codes. "etpe explain CODE" says more about one.'
    as_command(parser, _report)


def _report(_: argparse.Namespace) -> Report:
    rules = [{'code': code, 'severity': SEVERITIES[code[0]], 'title': title}
             for code, (title, _) in ENTRIES.items()]
    return Report([Grid(('code', 'severity', 'title'), [tuple(rule.values()) for rule in rules])],
                  {'rules': rules})
