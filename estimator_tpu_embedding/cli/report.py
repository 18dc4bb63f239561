"""Runs a reporting command and prints its report as text, for a terminal or in JSON.

A terminal gets colours by the package rich; a pipe gets plain text. `--format` chooses JSON. Every
string from a file passes `printable`, so that no name can steer a terminal. A JSON report is one
object. It has `"format"`, which is 1 until a member changes its meaning, `"command"`, and the
members that the module of the command documents. New members may appear.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import errno
import functools
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import EteError

FORMATS = ('text', 'json')
MAX_CELL, MAX_LINE = 60, 400
_STYLES = {'head': 'bold', 'bad': 'red', 'warn': 'yellow', 'good': 'green'}


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A line of text; `tone` is `''` or a key of the colours above."""

    text: str
    tone: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """A table.

    Attributes:
      head: titles of the columns; one that begins with `>` is aligned to the right.
      rows: as many cells each as there are columns.
      tones: of the rows, all `''` if left out.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    tones: Sequence[str] = ()

    @property
    def titles(self) -> list[str]:
        """Titles of the columns, without the mark for alignment."""
        return [title.removeprefix('>') for title in self.head]


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A text in Markdown that belongs to the package, so nothing in it is escaped."""

    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Content of a file, printed as it is; the command that made it has escaped foreign names."""

    text: str


Block = Line | Grid | Document | Source


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The result of a command.

    Attributes:
      blocks: for people.
      data: for programs.
      status: exit status: 0, or 1 with findings or differences.
    """

    blocks: Sequence[Block]
    data: Mapping[str, Any]
    status: int = 0


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


def as_command(parser: argparse.ArgumentParser, work: Callable[[argparse.Namespace], Report],
               *inputs: str, flag: str = '--format') -> None:
    """Sets up the parser of a reporting command: its `--format`, errors and exit status.

    Args:
      parser: of the command.
      work: makes the report from the parsed arguments; an `EteError` from it is exit status 2.
      *inputs: names of the arguments that `inputs.load` is to read.
      flag: chooses the form of the report, if `--format` means something else there.
    """
    for name in inputs:
        parser.add_argument(name.lower(), metavar=name, help='a file with a config as text, '
                            'binary or base64, or another file with one; a checkpoint; - is '
                            'standard input')
    parser.add_argument(flag, dest='report_format', choices=FORMATS, default='text',
                        help='of the output; text has colours on a terminal')
    parser.set_defaults(command=functools.partial(_run, parser.prog, work), refuse=parser.error)


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
    elif _on_terminal(sys.stdout) and importlib.util.find_spec('rich') is not None:
        _show_rich(report)
    else:
        _write(sys.stdout, ''.join(map(_text, report.blocks)))


def _is_open(stream: Any) -> bool:
    """Whether there is a stream: a process that was started without one has `None`."""
    return stream is not None and not stream.closed


def _on_terminal(stream: Any) -> bool:
    return _is_open(stream) and stream.isatty()


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


def _text(block: Block) -> str:
    if isinstance(block, (Document, Source)):
        return block.text
    if isinstance(block, Line):
        return printable(block.text) + '\n'
    rows = [[printable(cell, MAX_CELL) for cell in row] for row in (block.titles, *block.rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ''.join('  '.join(
        cell.rjust(width) if title.startswith('>') else cell.ljust(width)
        for cell, width, title in zip(row, widths, block.head)).rstrip() + '\n' for row in rows)


def _show_rich(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
    console = Console(highlight=False)
    for block in report.blocks:
        if isinstance(block, Document):
            console.print(_folded(block.text))
            continue
        if isinstance(block, Source):
            _write(sys.stdout, block.text)
            continue
        if isinstance(block, Line):
            console.print(Text(printable(block.text), _STYLES.get(block.tone, '')), soft_wrap=True)
            continue
        table = Table(box=None, pad_edge=False, header_style=_STYLES['head'])
        for head, title in zip(block.head, block.titles):
            table.add_column(title, overflow='fold',
                             justify='right' if head.startswith('>') else 'left')
        for row, tone in zip(block.rows, block.tones or [''] * len(block.rows)):
            table.add_row(*(Text(printable(cell, MAX_CELL)) for cell in row),
                          style=_STYLES.get(tone, ''))
        console.print(table)


def _folded(text: str) -> Any:
    """Returns Markdown to be printed, whose tables break long names and do not cut them."""
    from rich.markdown import Markdown, TableElement  # Slow to import, and few reports need it.
    from rich.table import Table

    class FoldedTable(TableElement):
        def __rich_console__(self, console: Any, options: Any) -> Any:
            for part in super().__rich_console__(console, options):
                for column in part.columns if isinstance(part, Table) else ():
                    column.overflow = 'fold'
                yield part

    class Folded(Markdown):
        elements = {**Markdown.elements, 'table_open': FoldedTable}

    return Folded(text, hyperlinks=False)
