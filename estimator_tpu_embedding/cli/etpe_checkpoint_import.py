"""Makes a checkpoint that a job can start from, of the files in DIR that --table names. CKPT is the
new checkpoint: a directory without checkpoints, or a name such as DIR2/model.ckpt-0. All files are
checked first.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..checkpoint import manifest
from ..errors import ConfigError, Problem, counted, shown
from ..proto import reading
from .report import Grid, Line, Report, as_command, as_lines

if TYPE_CHECKING:  # The command alone needs NumPy.
    from ..migration.rows_import import NamedFile

_NAMED = re.compile(r'(?P<table>[^=]+)=(?P<file>.+?\.(?:npy|safetensors|parquet))'
                    r'(?::(?P<column>.+))?', re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('dir', metavar='DIR', help='of the files')
    parser.add_argument('checkpoint', metavar='CKPT', help='the new checkpoint')
    parser.add_argument('--table', metavar='NAME=FILE[:COLUMN]', action='append', required=True,
                        help='rows of a table, in the order of ids unless there are ids: a .npy '
                        'file, or a column of a .safetensors or .parquet file, whose column '
                        '"id" has the ids')
    parser.add_argument('--ids', metavar='NAME=FILE[:COLUMN]', action='append', default=[],
                        help='the ids of the rows, if they are elsewhere')
    as_command(parser, _report)


def _report(parsed: argparse.Namespace) -> Report:
    from ..migration import rows_import
    tables = rows_import.checked(parsed.dir, _named('table', parsed.table),
                                 _named('ids', parsed.ids))
    prefix, left = rows_import.write(parsed.checkpoint, tables)
    notes = [f'removed what {counted(left, "save or import")} that did not end had left'
             ] if left else []
    shapes = [(one.name, one.column.shape[0], one.column.shape[1]) for one in tables]
    data = {'checkpoint': reading.label(prefix), 'manifest_sha256': manifest.digest(prefix),
            'notes': notes, 'tables': [{'name': name, 'rows': rows, 'width': width}
                                       for name, rows, width in shapes]}
    return Report([*as_lines(notes, 'warn'),
                   Grid(('table', '>rows', '>width'), [
                       (name, f'{rows:,}', str(width)) for name, rows, width in shapes]),
                   Line(f'committed as {prefix}', 'good')], data)


def _named(flag: str, texts: Sequence[str]) -> list[NamedFile]:
    """Returns the values of `--table` or `--ids`: E669 if one has another form."""
    from ..migration.rows_import import NamedFile
    found = []
    for text in texts:
        match = _NAMED.fullmatch(text)
        if match is None:
            raise ConfigError(Problem(
                'E669', f'--{flag}', 'it must be NAME=FILE.npy, or NAME=FILE:COLUMN with '
                'a .safetensors or .parquet file',
                shown(repr(text), 200)))
        found.append(NamedFile(match['table'], match['file'], match['column'] or ''))
    return found
