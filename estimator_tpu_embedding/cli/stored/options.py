"""Adds and reads the arguments that several commands about checkpoints take."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ...checkpoint.options import CheckpointOptions
from ...errors import ConfigError, Problem, shown

ASSUME = '"div", or "mod:H" for H hosts: how rows are ordered in checkpoints that do not say it'
"""Help of `--assume`."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the parser of a command that reads rows."""
    parser.add_argument('--assume', metavar='ORDER', help=f'{ASSUME}; there all float tensors '
                        'with two dimensions count as tables')
    parser.add_argument('--no-verify', action='store_true', help='check only the sizes of '
                        'files before they are read, and not their SHA-256')


def options(parsed: argparse.Namespace) -> CheckpointOptions:
    """Returns what the arguments say.

    Raises:
      ConfigError: if a value is not allowed.
    """
    return CheckpointOptions(assume=parsed.assume, verify='size' if parsed.no_verify else 'sha256',
                             rename=renames(getattr(parsed, 'rename', ())))


def renames(texts: Iterable[str]) -> dict[str, str]:
    """Returns the values of `--rename OLD=NEW` as a dict.

    Raises:
      ConfigError: E626 if a value has another form, or an OLD comes twice.
    """
    renamed: dict[str, str] = {}
    for text in texts:
        old, _, new = text.partition('=')
        if not old or not new or old in renamed:
            raise ConfigError(Problem('E626', '--rename', 'it must be OLD=NEW, with each OLD once',
                                      shown(repr(text), 200)))
        renamed[old] = new
    return renamed
