"""Reads and writes manifests: a JSON file beside a checkpoint describes its tables and files.

A checkpoint of a `mod` table holds its rows in an order that depends on the number of hosts.
Without the manifest row 9 could be any id.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from typing import Any

from ..core import limits
from ..core.names import name_problems
from ..core.partition import STRATEGIES, Partition
from ..core.plan import Plan
from ..core.specs import is_count
from ..core.vocabulary_digests import Vocabulary
from ..errors import CorruptCheckpointError, Problem, shown
from ..proto import files
from ..version import VERSION
from .file_names import MANIFEST, PARTIAL, label, parse

FORMAT = 3
_OWN = 'sha256'
"""The field that holds the SHA-256 of all others. Without it a flipped bit could turn 3 hosts into
2, and give every id the row of another."""
_MAX_BYTES = 32 * 2**20
_MAX_VALUES = 1_000_000
"""The most values. A manifest with the most tables, files and vocabularies has fewer."""
_MAX_SLOTS = 10
_MAX_FILES = 10_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """One table as a checkpoint holds it.

    Attributes:
      rows: number of rows, = vocabulary size.
      width: number of columns.
      strategy: `'div'` or `'mod'`, by which the rows are ordered.
      hosts: the number of hosts, on which the order of `mod` rows depends.
      slots: suffixes of the slot tensors, `<variable name>/<suffix>`.
    """

    rows: int
    width: int
    strategy: str
    hosts: int
    slots: tuple[str, ...]

    @property
    def partition(self) -> Partition:
        """The map between ids and stored rows."""
        return Partition(
            strategy=self.strategy, vocabulary_size=self.rows, num_hosts=self.hosts)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file of a checkpoint: its size in bytes, and its SHA-256 in hexadecimal digits."""

    size: int
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The options that the job of a checkpoint has carried out, and that must be done only once.

    They are as in `CheckpointOptions`, with names as they were given.
    """

    rename: dict[str, str] = dataclasses.field(default_factory=dict)
    reset_slots: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of one checkpoint; if it is there, the checkpoint is complete.

    Attributes:
      step: the global step at which it was saved.
      tables: by variable name.
      created_by: name and version of the writer.
      config: the serialized `TPUEmbeddingConfiguration` of the job, for people and tools; may be
        empty. Nothing that is restored depends on it.
      plan_digest: SHA-256 of the plan in hexadecimal digits; may be empty.
      created: time in seconds since 1970, for people.
      files: all files of the checkpoint but this one, by their names in its directory.
      applied: options that a job must not carry out again when it is started again.
      vocabularies: which words have which ids, by feature that has words.
    """

    step: int
    tables: dict[str, StoredTable]
    created_by: str
    config: bytes = b''
    plan_digest: str = ''
    created: float = 0.0
    files: dict[str, StoredFile] = dataclasses.field(default_factory=dict)
    applied: Applied = Applied()
    vocabularies: dict[str, Vocabulary] = dataclasses.field(default_factory=dict)

    def to_json(self) -> bytes:
        """Returns the content of the file."""
        fields = {'format': FORMAT, **dataclasses.asdict(self),
                  'config': base64.b64encode(self.config).decode()}
        fields[_OWN] = files.sha256_of_json(fields)
        return (json.dumps(fields, indent=1, sort_keys=True) + '\n').encode()


def stored_tables(plan: Plan, variable_names: dict[str, str]) -> dict[str, StoredTable]:
    """Returns the tables of a plan as a checkpoint of it holds them, by variable name.

    >>> from ..core.specs import FeatureSpec, TableSpec, Topology
    >>> from ..core.plan import resolve
    >>> plan = resolve([TableSpec(name='t', vocabulary_size=5, dimension=2)],
    ...                [FeatureSpec(name='f', table='t')], Topology(num_hosts=2),
    ...                batch_size=2, mode='inference', strategy='mod')
    >>> stored_tables(plan, {'t': 'scope/weights'})['scope/weights']
    StoredTable(rows=5, width=2, strategy='mod', hosts=2, slots=())
    """
    return {variable_names[table.name]: StoredTable(
        rows=table.vocabulary_size, width=table.dimension, strategy=plan.strategy,
        hosts=plan.topology.num_hosts,
        slots=tuple(slot.suffix for slot in plan.slots(table.name))) for table in plan.tables}


def tensors_of(variable: str, table: StoredTable) -> list[str]:
    """Returns the names of the tensors of a table and of its slots; the table comes first."""
    return [variable, *[f'{variable}/{slot}' for slot in table.slots]]


def read_manifest(checkpoint: str) -> Manifest | None:
    """Reads the manifest beside a checkpoint; `None` if there is none, E611 if it is unreadable."""
    path = checkpoint + MANIFEST
    return read_file(path, os.path.basename(checkpoint)) if os.path.lexists(path) else None


def read_file(path: str, name: str) -> Manifest:
    """Reads the manifest at a path, of the checkpoint of that name; E611 if it cannot."""
    with _must_be_readable(path, name):
        return _parsed(files.content_of(path, _MAX_BYTES, follow=False), name)


@contextlib.contextmanager
def _must_be_readable(path: str, name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError,
            OverflowError) as error:
        raise CorruptCheckpointError(Problem(
            'E611', label(name),
            f'its manifest {shown(os.path.basename(path), 255)} must be readable',
            f'{type(error).__name__}: {shown(error, 200)}',
            'Restore the file from a copy, or use another checkpoint.')) from error


def digest(checkpoint: str) -> str:
    """Returns the SHA-256 of a manifest, which covers the hashes of all files; else E611."""
    path = checkpoint + MANIFEST
    with _must_be_readable(path, os.path.basename(checkpoint)):
        return hashlib.sha256(files.content_of(path, _MAX_BYTES, follow=False)).hexdigest()


def _parsed(content: bytearray, checkpoint: str) -> Manifest:
    fields = files.json_object(content, _MAX_VALUES)
    own = fields.pop(_OWN, None)
    is_unchanged = own == files.sha256_of_json(fields)
    version = fields.pop('format')
    if version != FORMAT:
        raise ValueError(f'format {version!r}, written by {shown(fields.get("created_by"))}; '
                         f'estimator_tpu_embedding {VERSION} reads format {FORMAT}')
    expected = {field.name for field in dataclasses.fields(Manifest)}
    if set(fields) != expected:
        raise ValueError(f'unknown or missing fields {sorted(set(fields) ^ expected)}')
    for key, kinds in (('created_by', str), ('plan_digest', str), ('created', (int, float))):
        if not isinstance(fields[key], kinds) or isinstance(fields[key], bool):
            raise ValueError(f'{key}: {fields[key]!r}')
    if not is_count(fields['step'], 0, 2**63 - 1) or not math.isfinite(fields['created']):
        raise ValueError('step must be an int >= 0 and created a time')
    if len(fields['tables']) > limits.MAX_TABLES or len(fields['files']) > _MAX_FILES:
        raise ValueError(f'more than {limits.MAX_TABLES} tables or {_MAX_FILES} files')
    if len(fields['vocabularies']) > limits.MAX_FEATURES:
        raise ValueError(f'vocabularies of more than {limits.MAX_FEATURES} features')
    if not is_unchanged:
        raise ValueError('its SHA-256 of itself is another one: it was damaged or edited')
    return Manifest(**{
        **fields, 'config': base64.b64decode(fields['config'], validate=True),
        'applied': _applied(fields['applied']),
        'tables': {name: _table(name, entry) for name, entry in fields['tables'].items()},
        'files': {name: _file(name, entry, checkpoint)
                  for name, entry in fields['files'].items()},
        'vocabularies': {name: _vocabulary(name, entry)
                         for name, entry in fields['vocabularies'].items()}})


def _applied(entry: dict[str, Any]) -> Applied:
    rename, reset = entry['rename'], entry['reset_slots']
    if len(entry) != 2 or not isinstance(rename, dict) or not isinstance(reset, list) or not all(
            isinstance(name, str) for name in (*rename.values(), *reset)):
        raise ValueError(f'applied: {shown(entry, 200)}')
    return Applied(rename=rename, reset_slots=tuple(reset))


def _file(name: str, entry: dict[str, Any], checkpoint: str) -> StoredFile:
    """Returns the entry of one file, which must belong to this very checkpoint."""
    part = parse(name)
    if part is None or part.checkpoint != checkpoint or part.kind in (MANIFEST, PARTIAL):
        raise ValueError(f'{shown(name)} is no file of it')
    if not is_count(entry['size'], 0, 2**63 - 1) or not re.fullmatch(
            '[0-9a-f]{64}', entry['sha256']) or len(entry) != 2:
        raise ValueError(f'file {name}: {shown(entry)}')
    return StoredFile(**entry)


def _vocabulary(name: str, entry: dict[str, Any]) -> Vocabulary:
    """Returns the entry of one feature."""
    found = Vocabulary(**entry)
    if not re.fullmatch('[0-9a-f]{64}', found.sha256) or not found.is_possible():
        raise ValueError(f'vocabulary of {shown(name)}: {shown(entry, 200)}')
    return found


def _table(name: str, entry: dict[str, Any]) -> StoredTable:
    slots = entry['slots']
    if not isinstance(slots, list) or len(slots) > _MAX_SLOTS:
        raise ValueError(f'slots must be a list of at most {_MAX_SLOTS} names')
    for part in (name, *slots):
        for problem in name_problems('table', part):
            raise ValueError(str(problem))
    for key, highest in (('rows', limits.MAX_VOCABULARY_SIZE), ('width', limits.MAX_DIMENSION),
                         ('hosts', limits.MAX_HOSTS)):
        if not is_count(entry[key], 1, highest):
            raise ValueError(f'{key} must be an int in [1, {highest}]: {entry[key]!r}')
    if entry['strategy'] not in STRATEGIES:
        raise ValueError(f'strategy {entry["strategy"]!r}')
    return StoredTable(rows=entry['rows'], width=entry['width'], strategy=entry['strategy'],
                       hosts=entry['hosts'], slots=tuple(slots))
