"""Reads and writes `rows.json`, which says what the row files of a directory hold.

It is one JSON object with these members:

- `format`: 1. `created_by`: the writer.
- `kind`: `"npy"`, `"safetensors"` or `"parquet"`.
- `checkpoint`: `name`, `step` and `manifest_sha256`; the last two are `null` if unknown.
- `tables`: each with `name`, `rows`, `width`, `tensors` and `shards`, see the classes below.
- `sha256`: of all other members, as `json.dumps(..., sort_keys=True)` writes them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from ...core import limits
from ...core.names import name_problems
from ...core.specs import is_count
from ...errors import CheckpointError, Problem, shown
from ...proto import files, json_objects
from ...version import VERSION
from .files import CODES
from .writers import FORMATS

NAME = 'rows.json'
FORMAT = 1
MAX_FILES = 100_000
"""The most files of an export."""
_MAX_BYTES = 64 * 2**20
_MAX_VALUES = 2_000_000
_OWN = 'sha256'
_FLOATS = frozenset(kind for kind in CODES if 'float' in kind)
_FILE_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}')
_DIGEST = re.compile('[0-9a-f]{64}')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RowFile:
    """A file: its name, its bytes, its SHA-256, and the tensors of which it holds rows."""

    name: str
    size: int
    sha256: str
    tensors: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The rows of the ids from `first_id` to `first_id + rows - 1`, in their order."""

    first_id: int
    rows: int
    files: tuple[RowFile, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TensorOfRows:
    """A table or a slot: its name in the checkpoint and its type.

    `slot` is the name of the slot; `''` is the table itself.
    """

    name: str
    slot: str
    dtype: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfTable:
    """A table: the name of its variable, its shape, its tensors and its shards.

    The first tensor is the table itself; slots follow.
    """

    name: str
    rows: int
    width: int
    tensors: tuple[TensorOfRows, ...]
    shards: tuple[Shard, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointOfRows:
    """The checkpoint that rows come from: its name, step, and the SHA-256 of its manifest."""

    name: str
    step: int | None
    manifest_sha256: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RowsIndex:
    """What `rows.json` says."""

    kind: str
    checkpoint: CheckpointOfRows
    tables: tuple[RowsOfTable, ...]
    created_by: str = f'estimator_tpu_embedding {VERSION}'

    @property
    def file_names(self) -> list[str]:
        """The names of all files of rows."""
        return [file.name for table in self.tables for shard in table.shards
                for file in shard.files]

    def to_json(self) -> bytes:
        """Returns the content of the file."""
        fields: dict[str, Any] = {'format': FORMAT, **dataclasses.asdict(self)}
        fields = json.loads(json.dumps(fields))  # Tuples become lists.
        fields[_OWN] = json_objects.sha256_of(fields)
        return (json.dumps(fields, indent=1, sort_keys=True) + '\n').encode()


def read(directory: str) -> RowsIndex | None:
    """Reads the `rows.json` of a directory; returns `None` if there is none.

    Raises:
      CheckpointError: E664 if it cannot be read, or was edited.
    """
    path = os.path.join(directory, NAME)
    if not os.path.lexists(path):
        return None
    try:
        with files.open_regular(path, follow=False) as file:
            content = files.read_at_most(file, _MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError(f'more than {_MAX_BYTES:,} bytes')
        return _from_json(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError,
            OverflowError) as error:
        raise CheckpointError(Problem(
            'E664', f'{NAME} of {shown(directory, 200)}', 'it must be as etpe checkpoint export '
            f'wrote it (formats up to {FORMAT})', f'{type(error).__name__}: {shown(error, 200)}',
            'Export again, or name files by --table NAME=FILE in a directory without it.'
            )) from error


def _from_json(content: bytearray) -> RowsIndex:
    fields = json_objects.parsed(content, _MAX_VALUES)
    own, version = fields.pop(_OWN), fields.get('format')
    if version != FORMAT or isinstance(version, bool):
        raise ValueError(f'format {shown(version)}')
    if own != json_objects.sha256_of(fields):
        raise ValueError('its SHA-256 of itself is another one: it was damaged or edited')
    del fields['format']
    found = RowsIndex(**{
        **fields, 'checkpoint': CheckpointOfRows(**fields['checkpoint']),
        'tables': tuple(map(_table, fields['tables']))})
    for wrong in _untrue(found):
        raise ValueError(wrong)
    return found


def _table(entry: dict[str, Any]) -> RowsOfTable:
    return RowsOfTable(**{
        **entry, 'tensors': tuple(TensorOfRows(**one) for one in entry['tensors']),
        'shards': tuple(Shard(**{**shard, 'files': tuple(
            RowFile(**{**file, 'tensors': tuple(file['tensors'])}) for file in shard['files'])})
            for shard in entry['shards'])})


def _untrue(found: RowsIndex) -> Iterator[str]:
    """Yields what cannot be so. That ids are missing or come twice is said by the importer."""
    names = found.file_names
    step = found.checkpoint.step
    if found.kind not in FORMATS:
        yield f'kind {shown(found.kind)}'
    if step is not None and not is_count(step, 0, 2**63 - 1):
        yield f'step {shown(step)}'
    if len(found.tables) > limits.MAX_TABLES or len(names) > MAX_FILES:
        yield f'more than {limits.MAX_TABLES} tables or {MAX_FILES} files'
    tables = {table.name for table in found.tables}
    if len(set(names)) < len(names) or len(tables) < len(found.tables):
        yield 'a file or a table occurs twice'
    for table in found.tables:
        yield from _untrue_of_table(table)


def _untrue_of_table(table: RowsOfTable) -> Iterator[str]:
    for part in (table.name, *(tensor.name for tensor in table.tensors),
                 *(tensor.slot for tensor in table.tensors[1:])):
        yield from map(str, name_problems('table', part))
    own = [tensor.name for tensor in table.tensors]
    if (not own or table.tensors[0].slot or len(set(own)) < len(own)
            or len({tensor.slot for tensor in table.tensors}) < len(own)
            or not {tensor.dtype for tensor in table.tensors} <= _FLOATS):
        yield f'tensors of table "{shown(table.name)}"'
    if not (is_count(table.rows, 1, limits.MAX_VOCABULARY_SIZE)
            and is_count(table.width, 1, limits.MAX_DIMENSION)):
        yield f'{shown(table.rows)} x {shown(table.width)} of table "{shown(table.name)}"'
    for shard in table.shards:
        if not (is_count(shard.first_id, 0, limits.MAX_VOCABULARY_SIZE)
                and is_count(shard.rows, 1, limits.MAX_VOCABULARY_SIZE)):
            yield f'ids {shown(shard.first_id)} and {shown(shard.rows)} more'
        if sorted(name for file in shard.files for name in file.tensors) != sorted(own):
            yield f'tensors in shards of table "{shown(table.name)}"'
        for file in shard.files:
            if not _FILE_NAME.fullmatch(file.name) or file.name == NAME:
                yield f'file "{shown(file.name)}"'
            if not is_count(file.size, 0, 2**63 - 1) or not _DIGEST.fullmatch(file.sha256):
                yield f'size or SHA-256 of file "{shown(file.name)}"'
