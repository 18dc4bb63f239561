"""Writes and reads `rows.json`, which says what the row files of a directory hold.

It is one JSON object with these members:

- `format`: 2. `created_by`: the writer. `kind`: `"npy"`, `"safetensors"` or `"parquet"`.
- `checkpoint`: its `name`, and its `step`, or `null`.
- `tables`: each with its `name`, and `tensors`: the table itself, then its slots. Each of these has
  `name`, `slot` (`""` is the table), `dtype`, `file`, `column` in it, and `sha256` of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.names import name_problems
from ...core.specs import is_count
from ...errors import CheckpointError, EteError, Problem, shown
from ...proto import files, json_objects
from ...version import VERSION
from .files import CODES, FORMATS, ID, Column, bad_file, columns_of, opened, stored_kind
from .incoming import Feed, Incoming, integers, table_text

NAME = 'rows.json'
_FORMAT = 2
_MAX_BYTES = 64 * 2**20
_MAX_VALUES = 2_000_000


def content(fields: Mapping[str, Any]) -> bytes:
    """Returns the content of the file, with the members that are always the same."""
    return (json.dumps({'format': _FORMAT, 'created_by': f'estimator_tpu_embedding {VERSION}',
                        **fields}, indent=1) + '\n').encode()


def read(directory: str) -> tuple[list[Incoming], int] | None:
    """Checks all files of an export.

    Args:
      directory: of the files.

    Returns:
      The tables in them and the step of their checkpoint, or 0. `None` if there is no `rows.json`.

    Raises:
      CheckpointError: with all problems. E664 if `rows.json` cannot be read. E665 if a file is
        missing or was changed, E666 if it holds other rows than `rows.json` says.
    """
    path = os.path.join(directory, NAME)
    if not os.path.lexists(path):
        return None
    problems: list[Problem] = []
    try:
        with files.open_regular(path, follow=False) as file:
            text = files.read_at_most(file, _MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise ValueError(f'more than {_MAX_BYTES:,} bytes')
        fields = json_objects.parsed(text, _MAX_VALUES)
        if fields['format'] != _FORMAT or fields['kind'] not in FORMATS:
            raise ValueError(f'format {shown(fields["format"])} of {shown(fields["kind"])}')
        step = fields['checkpoint']['step'] or 0
        if not is_count(step, 0, 2**63 - 1):
            raise ValueError(f'step {shown(step)}')
        found = [_table(directory, fields['kind'], entry, problems) for entry in fields['tables']]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(Problem(
            'E664', f'{NAME} of {shown(directory, 200)}', 'it must be as etpe checkpoint export '
            f'wrote it (format {_FORMAT})', f'{type(error).__name__}: {shown(error, 200)}',
            'Export again, or name files by --table NAME=FILE in a directory without it.'
            )) from error
    if problems:
        raise CheckpointError(*problems)
    return found, step


def _table(directory: str, kind: str, entry: Mapping[str, Any], problems: list[Problem]
           ) -> Incoming:
    """Returns a table whose files are checked; adds their problems.

    Raises:
      ValueError: if a name or a type cannot be so.
    """
    name = entry['name']
    shape: tuple[int, ...] = ()
    feeds: dict[str, Feed] = {}
    for one in entry['tensors']:
        for wrong in [name, one['name'], *([one['slot']] if feeds else [])]:
            if bad := next(name_problems('table', wrong), None):
                raise ValueError(str(bad))
        if bool(one['slot']) != bool(feeds) or one['slot'] in feeds:
            raise ValueError(f'slot {shown(one["slot"])}')
        if one['dtype'] not in CODES or 'float' not in one['dtype']:
            raise ValueError(f'type {shown(one["dtype"])}')
        try:
            column = _checked(directory, kind, one)
            shape = shape or column.shape
            if column.shape != shape:
                raise _other(one, f'{column.kind} {list(shape)}', column)
            feeds[one['slot']] = Feed(one['dtype'], [column])
        except EteError as error:
            problems += error.problems
            feeds[one['slot']] = Feed(one['dtype'], [])
    if not feeds:
        raise ValueError(f'{table_text(name)} without tensors')
    rows, width = shape or (0, 0)
    return Incoming(name, rows, width, feeds, None)


def _checked(directory: str, kind: str, one: Mapping[str, Any]) -> Column:
    """Returns the column of a tensor, after verifying its file."""
    columns = columns_of(directory, one['file'])
    digest = hashed(os.path.join(directory, one['file']))
    if digest != one['sha256']:
        raise bad_file(
            one['file'], f'it must be as it was written: SHA-256 {shown(one["sha256"], 12)}',
            digest[:12], 'Export again, or restore the file from a copy.')
    column, wanted = columns.get(one['column']), stored_kind(kind, one['dtype'])
    if column is None or (column.kind, len(column.shape)) != (wanted, 2) or not all(column.shape):
        raise _other(one, f'rows of {wanted}', column)
    if kind == 'parquet':
        first = 0
        for ids in integers([columns[ID]] if ID in columns else []):
            if not np.array_equal(ids, np.arange(first, first + len(ids))):
                break
            first += len(ids)
        if first != column.shape[0]:
            raise bad_file(one['file'], f'its column {ID} must count from 0', 'other numbers',
                           'Export again.')
    return column


def _other(one: Mapping[str, Any], wanted: str, column: Column | None) -> CheckpointError:
    return CheckpointError(Problem(
        'E666', f'tensor "{shown(one["name"], 200)}"', f'file {shown(one["file"], 255)} must hold '
        f'{wanted}', 'no column for it' if column is None else str(column), 'Export again.'))


def hashed(path: str) -> str:
    """Returns the SHA-256 of a regular file.

    Raises:
      CheckpointError: E665 if it cannot be read.
    """
    digest = hashlib.sha256()
    with opened(path) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
