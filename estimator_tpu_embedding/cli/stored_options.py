"""Arguments that several commands about checkpoints take, and what they mean."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..checkpoint.options import CheckpointOptions
from ..errors import Problem
from . import arguments, stored_directory
from .render import Line
from .stored import Stored

_NOT_VERIFIED = 'not verified: only the sizes of its files were looked at'


class Opened(NamedTuple):
    """A checkpoint that a command was given.

    Attributes:
      stored: to look into.
      notes: what the user has to know of it.
      skipped: what is wrong with newer ones in its directory.
    """

    stored: Stored
    notes: list[str]
    skipped: tuple[Problem, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the parser of a command that reads rows."""
    parser.add_argument('--assume', metavar='ORDER', help=f'{arguments.ASSUME}; there all float '
                        'tensors with two dimensions count as tables')
    parser.add_argument('--no-verify', action='store_true', help='look at the sizes of files '
                        'only, before they are read, and not at their SHA-256')


def options(parsed: argparse.Namespace) -> CheckpointOptions:
    """What the arguments say.

    Raises:
      ConfigError: if a value cannot be meant.
    """
    return CheckpointOptions(assume=parsed.assume, verify='size' if parsed.no_verify else 'sha256',
                             rename=arguments.renames(getattr(parsed, 'rename', ())))


def opened(path: str, given: CheckpointOptions) -> Opened:
    """Opens the checkpoint that a path stands for.

    Raises:
      UnreadableConfigError, CorruptCheckpointError: if that cannot be.
    """
    chosen = stored_directory.chosen(path, given)
    one = Stored(chosen.prefix, given.assumed_order())
    notes = []
    if chosen.newer:
        notes.append(f'{one.where} is what a job would restore, not the newest that is there: '
                     + ', '.join(chosen.newer))
    return Opened(one, notes, chosen.skipped)


def damage(one: Stored, given: CheckpointOptions, notes: list[str]) -> tuple[Problem, ...]:
    """What is wrong with the files whose rows are to be read; `notes` gets what is not known."""
    if given.verify == 'size':
        notes.append(f'{one.where}: {_NOT_VERIFIED}')
    return stored_directory.damage(one.prefix, given)


def as_data(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Problems for programs: a code and a message each."""
    return [{'code': problem.code, 'message': str(problem)} for problem in problems]


def as_lines(problems: Iterable[Problem], tone: str = 'bad') -> list[Line]:
    """Problems for people."""
    return [Line(str(problem), tone) for problem in problems]


def count_text(count: int, what: str) -> str:
    """A number of things.

    >>> count_text(1, 'row'), count_text(1200, 'row')
    ('1 row', '1,200 rows')
    """
    return f'{count:,} {what}' if count == 1 else f'{count:,} {what}s'
