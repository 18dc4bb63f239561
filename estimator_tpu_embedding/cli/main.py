"""The `etpe` command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..version import VERSION
from . import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit status.

    Args:
      arguments: of the command line, without the program; those of the process if `None`.
    """
    parser = argparse.ArgumentParser(
        prog='etpe', description='TF1 TPU-embedding jobs on plain CPU hosts.',
        allow_abbrev=False)
    parser.add_argument('--version', action='version', version=f'etpe {VERSION}')
    commands = parser.add_subparsers(title='commands', required=True, metavar='COMMAND')
    run.add_parser(commands)
    given = list(sys.argv[1:] if arguments is None else arguments)
    rest: list[str] = []
    if given[:1] == ['run']:
        head, rest = run.split_at_script(given[1:])
        given = ['run', *head]
    parsed = parser.parse_args(given, argparse.Namespace(rest=rest))
    return int(parsed.command(parsed))
