"""Runs a reporting command and prints its report as text, for a terminal or in JSON.

A terminal gets colours; `--format` chooses JSON. Every string from a file passes `printable`, so
that no name can steer a terminal. A JSON report is one object. It has `"format"`, which is 1 until
a member changes its meaning, `"command"`, and the members that `docs/reports.md` has for the
command. New members may appear.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import errno
import functools
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..checkpoint.storage import write_atomically
from ..errors import ConfigError, EteError, Problem, quoted, shown

MAX_CELL, MAX_LINE = 60, 400
_COLOURS = {'head': '\x1b[1m', 'bad': '\x1b[31m', 'warn': '\x1b[33m', 'good': '\x1b[32m'}
_END_OF_COLOUR = '\x1b[0m'
_MOST_NAMES = 5


class Line(NamedTuple):
    """A line of text; `tone` is `''` or a key of the colours above."""

    text: str
    tone: str = ''


class Grid(NamedTuple):
    """A table."""

    head: Sequence[str]  # Titles of the columns; one that begins with `>` is aligned to the right.
    rows: Sequence[Sequence[str]]
    tones: Sequence[str] = ()  # Of the rows, all `''` if left out.


Block = Line | Grid | str
"""A `str` is printed as it is: it is of the package, or its command has escaped foreign names."""


class Report(NamedTuple):
    """The result of a command."""

    blocks: Sequence[Block]  # For people.
    data: Mapping[str, Any]  # For programs.
    status: int = 0  # The exit status: 0, or 1 with findings or differences.


def printable(text: str, most: int = MAX_LINE) -> str:
    r"""Returns `text` without control characters and direction marks, cut in its middle if it is
    long.

    >>> print(printable('a\x1b[31m\n\u202eb'), printable('abcdefghij', 7))
    a\x1b[31m\n\u202eb abc…hij
    """
    if len(text) > most:
        text = f'{text[:most // 2]}…{text[len(text) - (most - 1) // 2:]}'
    if text.isprintable():
        return text
    return ''.join(char if char.isprintable() else char.encode('unicode_escape').decode()
                   for char in text)


def names_text(names: Iterable[str]) -> str:
    """Returns the first names, and the number of the others, as text."""
    every = list(names)
    more = f' and {len(every) - _MOST_NAMES} more' if len(every) > _MOST_NAMES else ''
    return quoted(every[:_MOST_NAMES]) + more


def as_data(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Returns problems for programs: a code and a message each."""
    return [{'code': problem.code, 'message': str(problem)} for problem in problems]


def as_lines(said: Iterable[Problem | str], tone: str = 'bad') -> list[Line]:
    """Returns problems and notes for people."""
    return [Line(str(one), tone) for one in said]


def time_text(seconds: float) -> str:
    """Returns a time for people; nothing if there is none."""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
            '%Y-%m-%d %H:%M:%S UTC') if seconds else ''
    except (OverflowError, ValueError, OSError):  # A manifest may say any number.
        return '?'


def json_number(value: float) -> float | str:
    """Returns a number as JSON can hold it."""
    return value if math.isfinite(value) else str(value)


def number_text(value: float | str) -> str:
    """Returns a number, or its text in JSON, for people."""
    return f'{value:.6g}' if isinstance(value, float) else str(value)


def as_command(parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], Report],
               *inputs: str, flag: str = '--format') -> None:
    """Sets up the parser of a reporting command: its `--format`, errors and exit status.

    Args:
      parser: of the command.
      work: makes the report from the parsed arguments; an `EteError` from it is exit status 2.
      *inputs: names of the arguments that `input_argument.load` is to read.
      flag: chooses the form of the report, if `--format` means something else there.
    """
    for name in inputs:
        parser.add_argument(name.lower(), metavar=name, help='a file with a config as text '
                            'or binary, or another file with one; a checkpoint; - is standard '
                            'input')
    parser.add_argument(flag, dest='report_format', choices=('text', 'json'), default='text',
                        help='of the output; text has colours on a terminal')
    parser.set_defaults(command=functools.partial(_run, parser.prog, work), refuse=parser.error)


def write_output(path: str, content: bytes) -> None:
    """Writes the file that `-o` names, all of it or nothing; E678 if that is not possible."""
    try:
        write_atomically(path, content)
    except (OSError, ValueError) as error:
        raise output_error(path, 'it must be possible to write it', shown(
            getattr(error, 'strerror', None) or error, 200)) from error


def output_error(path: str, rule: str, got: str) -> ConfigError:
    """Returns the error of a file that `-o` names."""
    return ConfigError(Problem('E678', f'-o {shown(path, 200)}', rule, got, 'Name another file.'))


def _run(prog: str, work: Callable[[argparse.Namespace], Report],
         parsed: argparse.Namespace) -> int:
    try:
        report = work(parsed)
    except EteError as error:
        return _complain(*(f'{prog}: {printable(str(one))}' for one in error.problems))
    try:
        _show(prog, report, parsed.report_format)
    except OSError as error:
        return _complain(f'{prog}: cannot write the report: {error.strerror}')
    return report.status


def _complain(*lines: str) -> int:
    """Writes lines to standard error, if there is one; returns the exit status of an error."""
    with contextlib.suppress(OSError):  # There is nowhere left to say it.
        _write(sys.stderr, ''.join(f'{line}\n' for line in lines))
    return 2


def _show(prog: str, report: Report, format: str) -> None:
    if format == 'json':
        members = {'format': 1, 'command': prog.partition(' ')[2], **report.data}
        _write(sys.stdout, json.dumps(members, indent=1, allow_nan=False) + '\n')
    else:
        colours = _has_colours(sys.stdout)
        _write(sys.stdout, ''.join(
            line for block in report.blocks for line in _text(block, colours)))


def _has_colours(stream: Any) -> bool:
    if not _is_open(stream) or not stream.isatty():
        return False
    from ..compat import environment
    return environment.wants_colours()


def _is_open(stream: Any) -> bool:
    """Whether there is a stream: a process that was started without one has `None`."""
    return stream is not None and not stream.closed


def _write(stream: Any, text: str) -> None:
    """Writes all; a reader that went away, such as `head`, is no error."""
    if not _is_open(stream):
        raise OSError(errno.EBADF, 'it is closed')
    if hasattr(stream, 'reconfigure'):  # A stream that a test put there may not have it.
        stream.reconfigure(errors='backslashreplace')
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        with contextlib.suppress(BrokenPipeError):
            stream.close()  # Otherwise Python would flush it again at exit, and complain.


def _text(block: Block, colours: bool) -> Iterator[str]:
    if isinstance(block, str):
        yield block
        return
    lines = _aligned(block) if isinstance(block, Grid) else [(printable(block.text), block.tone)]
    for line, tone in lines:
        yield f'{_COLOURS[tone]}{line}{_END_OF_COLOUR}\n' if colours and tone else f'{line}\n'


def _aligned(grid: Grid) -> Iterator[tuple[str, str]]:
    """Yields the lines of a table, each with its tone."""
    titles = [title.removeprefix('>') for title in grid.head]
    rows = [[printable(cell, MAX_CELL) for cell in row] for row in (titles, *grid.rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row, tone in itertools.zip_longest(rows, ['head', *grid.tones], fillvalue=''):
        yield '  '.join(
            cell.rjust(width) if title.startswith('>') else cell.ljust(width)
            for cell, width, title in zip(row, widths, grid.head)).rstrip(), tone
