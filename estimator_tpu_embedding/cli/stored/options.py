"""Adds and reads the arguments that several commands about checkpoints take."""

from __future__ import annotations

import argparse

from ...checkpoint.options import CheckpointOptions
from .. import restore_arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the parser of a command that reads rows."""
    parser.add_argument('--assume', metavar='ORDER', help=f'{restore_arguments.ASSUME}; there all '
                        'float tensors with two dimensions count as tables')
    parser.add_argument('--no-verify', action='store_true', help='check only the sizes of '
                        'files before they are read, and not their SHA-256')


def options(parsed: argparse.Namespace) -> CheckpointOptions:
    """Returns what the arguments say.

    Raises:
      ConfigError: if a value is not allowed.
    """
    return CheckpointOptions(assume=parsed.assume, verify='size' if parsed.no_verify else 'sha256',
                             rename=restore_arguments.renames(getattr(parsed, 'rename', ())))
