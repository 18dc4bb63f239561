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
        prog='etpe', description='TF1 TPU-embedding jobs on plain CPU hosts.')
    parser.add_argument('--version', action='version', version=f'etpe {VERSION}')
    commands = parser.add_subparsers(title='commands', required=True, metavar='COMMAND')
    run.add_parser(commands)
    parsed = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    return int(parsed.command(parsed))
