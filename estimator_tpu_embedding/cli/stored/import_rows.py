"""`etpe checkpoint import`: makes a checkpoint of rows in files.

The report in JSON has these fields:

- `checkpoint`: the new one. `manifest_sha256`: of its manifest.
- `notes`: facts for people. `skipped`: of `--base`, as in `show`.
- `tables`: each with `name`, `rows`, `width`, `dtype`, `slots` and `came`. `came` is the number of
  rows that were read; the other rows are those of `--base`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...checkpoint import manifest
from ...checkpoint.options import CheckpointOptions
from ...checkpoint.tables_meant import meant
from ...errors import CheckpointError, ConfigError, CorruptCheckpointError, Problem, quoted, shown
from ...proto import reading
from ..report import Grid, Line, Report, as_data, as_lines, count_text
from .opened import Opened, damage, opened, report_of
from .options import renames

if TYPE_CHECKING:  # The command alone needs NumPy.
    from ...migration.rows.built import Base
    from ...migration.rows.incoming import Incoming, NamedFile

HELP = 'make a checkpoint of rows in npy, safetensors or parquet files'
_SUFFIXES = ('.npy', '.safetensors', '.parquet')
_NAMED = re.compile(r'(?P<table>[^=]+)=(?P<file>.+?\.(?:npy|safetensors|parquet))'
                    r'(?::(?P<column>.+))?', re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Makes a checkpoint that a job can start from. DIR is what etpe checkpoint export wrote, '
        'or holds the files that --table names. CKPT is the new checkpoint: a directory without '
        'checkpoints, or a name such as DIR2/model.ckpt-0. All files are checked first.')
    parser.add_argument('dir', metavar='DIR', help='of the files')
    parser.add_argument('checkpoint', metavar='CKPT', help='the new checkpoint')
    parser.add_argument('--table', metavar='NAME=FILE[:COLUMN]', action='append', default=[],
                        help='rows of a table, in the order of ids unless there are ids. A column '
                        '"id" in the same file has the ids')
    parser.add_argument('--ids', metavar='NAME=FILE[:COLUMN]', action='append', default=[],
                        help='the ids of the rows')
    parser.add_argument('--rename', action='append', default=[], metavar='OLD=NEW',
                        help='call a table of an export NEW')
    parser.add_argument('--base', metavar='CKPT0', help='begin from this checkpoint, replace the '
                        'rows that come, and keep everything else, slots too')
    parser.add_argument('--no-verify', action='store_true', help='check only the sizes of the '
                        'files of --base, and not their SHA-256')


def report(parsed: argparse.Namespace) -> Report:
    """Returns the report about an import."""
    if parsed.base is None:
        return _report(parsed)
    return report_of([parsed.base], lambda: _report(parsed))


def _report(parsed: argparse.Namespace) -> Report:
    from ...migration.rows import built
    notes: list[str] = []
    base, skipped = _base(parsed, notes)
    tables, step = _incoming(parsed, base)
    made = built.NewCheckpoint(
        parsed.checkpoint, base.manifest.step if base is not None else step, tables, base)
    if left := made.commit():
        notes.append(f'removed what {count_text(left, "save or import")} that did not end had left')
    entries = list(map(_data, tables))
    data = {'checkpoint': reading.label(made.prefix),
            'manifest_sha256': manifest.digest(made.prefix),
            'notes': notes, 'skipped': as_data(skipped), 'tables': entries}
    return Report([*(Line(note, 'warn') for note in notes), *as_lines(skipped, 'warn'),
                   _grid(entries), Line(f'committed as {made.prefix}', 'good')], data)


def _base(parsed: argparse.Namespace, notes: list[str]
          ) -> tuple[Base | None, Sequence[Problem]]:
    """Opens and verifies the checkpoint of `--base`; returns the problems of newer ones too."""
    if parsed.base is None:
        return None, ()
    from ...migration.rows.built import Base
    given = CheckpointOptions(verify='size' if parsed.no_verify else 'sha256')
    found: Opened = opened(parsed.base, given)
    one = found.stored
    if one.manifest is None:
        raise ConfigError(Problem(
            'E669', '--base', 'it must have a manifest, which names its tables', 'none',
            'Save it by a job of this package, or by etpe migrate checkpoint.'))
    notes += found.notes
    if problems := one.problems() or damage(one, given, notes):
        raise CorruptCheckpointError(*problems)
    return Base(one.bundle, one.manifest), found.skipped


def _incoming(parsed: argparse.Namespace, base: Base | None) -> tuple[list[Incoming], int]:
    """Checks the files; returns the tables in them, and the step of the new checkpoint."""
    from ...migration.rows import files, incoming
    there = base.manifest.tables if base is not None else None
    exported = incoming.exported(parsed.dir)
    if exported is None:
        if not parsed.table:
            raise CheckpointError(Problem(
                'E665', f'directory {shown(parsed.dir, 300)}', 'it must be an export, with '
                'rows.json, or --table must name its files', 'neither', 'An export without '
                'rows.json did not end. Otherwise give --table NAME=FILE.'))
        if parsed.rename:
            raise ConfigError(Problem('E669', '--rename', 'it is for tables of an export', 'files '
                                      'of --table', 'Give --table the new name.'))
        tables, ids = (_named(flag, getattr(parsed, flag), there) for flag in ('table', 'ids'))
        rows_of = None if there is None else {name: one.rows for name, one in there.items()}
        return incoming.from_elsewhere(parsed.dir, tables, ids, rows_of), 0
    if parsed.table or parsed.ids:
        raise ConfigError(Problem(
            'E669', '--table', f'{files.LISTING} says what the files of DIR are', 'both',
            f'Leave --table and --ids out, or move {files.LISTING} away.'))
    found, step = exported
    renamed = _renamed([one.name for one in found], renames(parsed.rename))
    return [one._replace(name=_in_base(renamed[one.name], there, '--rename'))
            for one in found], step


def _named(flag: str, texts: Sequence[str], there: Mapping[str, Any] | None) -> list[NamedFile]:
    """Returns the values of `--table` or `--ids`.

    Raises:
      ConfigError: E669 if one has another form, or names no table of the base.
    """
    from ...migration.rows.incoming import NamedFile
    found = []
    for text in texts:
        match = _NAMED.fullmatch(text)
        if match is None:
            raise ConfigError(Problem(
                'E669', f'--{flag}', 'it must be NAME=FILE or NAME=FILE:COLUMN, where FILE ends '
                f'with {", ".join(_SUFFIXES)}', shown(repr(text), 200)))
        found.append(NamedFile(_in_base(match['table'], there, f'--{flag}'), match['file'],
                               match['column'] or ''))
    return found


def _in_base(name: str, there: Mapping[str, Any] | None, flag: str) -> str:
    """Returns the full name of the table of the base that a name means; without a base, itself."""
    return name if there is None else _only(name, sorted(there), flag, '--base')


def _renamed(names: Sequence[str], renames: Mapping[str, str]) -> dict[str, str]:
    """Returns the new name of each table, by its old one."""
    return {**{name: name for name in names},
            **{_only(old, names, '--rename', 'DIR'): new for old, new in renames.items()}}


def _only(name: str, there: Sequence[str], flag: str, place: str) -> str:
    """Returns the full name of the one table that a name means."""
    several = meant(name, there)
    if len(several) != 1:
        raise ConfigError(Problem(
            'E669', f'{flag} {shown(name, 200)}', f'it must name one table of {place}',
            'several' if several else 'none of that name',
            f'There: {quoted(shown(one, 200) for one in several[:5] or there[:5])}.'))
    return several[0]


def _data(one: Incoming) -> dict[str, Any]:
    return {'name': one.name, 'rows': one.rows, 'width': one.width, 'dtype': one.feeds[''].kind,
            'slots': [slot for slot in one.feeds if slot],
            'came': one.came}


def _grid(tables: list[dict[str, Any]]) -> Grid:
    return Grid(('table', '>rows', '>width', 'slots', 'type', '>came'), [
        (one['name'], f'{one["rows"]:,}', str(one['width']), ', '.join(one['slots']) or 'none',
         one['dtype'], f'{one["came"]:,}') for one in tables])
