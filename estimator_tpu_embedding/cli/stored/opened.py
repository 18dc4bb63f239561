"""Opens a checkpoint for a command: its manifest, its tensors, and where the rows of ids are."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...checkpoint import bundle, layout
from ...checkpoint.bundle import Bundle
from ...checkpoint.file_names import manifest_path, parse
from ...checkpoint.layout import Held, partition_of
from ...checkpoint.manifest import StoredTable, read_manifest, tensors_of
from ...checkpoint.options import CheckpointOptions
from ...checkpoint.rotation import signature, steady, watch
from ...checkpoint.tensors import NO_ROW, Tensor
from ...core.partition import Partition
from ...core.vocabulary import Vocabulary
from ...errors import CorruptCheckpointError, Problem
from ...proto import files, reading
from ..report import Report
from . import choice

_NOT_VERIFIED = 'not verified: only the sizes of its files were looked at'


class Stored:
    """A checkpoint to look into.

    Attributes:
      prefix: its path without a suffix.
      where: the path, safe to print.
      manifest: of it, or `None`.
      bundle: its tensors.
      assumed: strategy and hosts by `--assume`; `None` if there is a manifest.
      known: see `choice.Chosen`.
    """

    def __init__(self, prefix: str, assume: tuple[str, int] | None = None, known: Any = None):
        """Opens it.

        Args:
          prefix: its path without a suffix.
          assume: strategy and hosts by which rows are ordered if no manifest says it.
          known: see `choice.Chosen`.

        Raises:
          CorruptCheckpointError: if its manifest or its index cannot be read.
        """
        self.prefix, self.known = prefix, known
        self.where = reading.label(prefix)
        self.manifest = read_manifest(prefix)
        self.bundle = Bundle.open(prefix)
        self.assumed = assume if self.manifest is None else None

    @functools.cached_property
    def digest(self) -> str | None:
        """The SHA-256 of its manifest; `None` without one."""
        if self.manifest is None:
            return None
        with bundle.opened(self.prefix, os.path.basename(manifest_path(self.prefix))) as file:
            return hashlib.sha256(files.read_at_most(file, files.size_of(file))).hexdigest()

    @functools.cached_property
    def tables(self) -> dict[str, StoredTable]:
        """Its tables by variable name; with `--assume` every tensor that can be one."""
        if self.manifest is not None:
            return self.manifest.tables
        if self.assumed is None:
            return {}
        strategy, hosts = self.assumed
        return {name: StoredTable(rows=tensor.rows, width=tensor.shape[1], strategy=strategy,
                                  hosts=hosts, slots=())
                for name, tensor in self.bundle.tensors.items() if _can_be_table(tensor)}

    @functools.cached_property
    def partitions(self) -> dict[str, Partition]:
        """Where the rows of ids are, by the names of the tensors of tables and slots."""
        return {name: partition_of(table) for variable, table in self.tables.items()
                for name in tensors_of(variable, table)}

    @property
    def vocabularies(self) -> dict[str, Vocabulary]:
        """Which words have which ids, by feature, as far as that was recorded."""
        return self.manifest.vocabularies if self.manifest is not None else {}

    def problems(self) -> tuple[Problem, ...]:
        """Returns what its manifest says that is not so."""
        try:
            layout.check_manifest(Held(self.bundle, self.manifest))
        except CorruptCheckpointError as error:
            return error.problems
        return ()


class Opened(NamedTuple):
    """The checkpoint that a command was given.

    Attributes:
      stored: to look into.
      notes: facts for the user.
      skipped: problems of newer ones in its directory.
    """

    stored: Stored
    notes: list[str]
    skipped: tuple[Problem, ...]


def opened(path: str, options: CheckpointOptions) -> Opened:
    """Opens the checkpoint that a path means.

    Raises:
      UnreadableConfigError: E645 if there is none.
      CorruptCheckpointError: if it cannot be read.
    """
    chosen = choice.chosen(path, options)
    one = Stored(chosen.prefix, options.assumed_order(), chosen.known)
    notes = []
    if chosen.newer:
        notes.append(f'{one.where} is what a job would restore, not the newest that is there: '
                     + ', '.join(chosen.newer))
    return Opened(one, notes, chosen.skipped)


def damage(one: Stored, options: CheckpointOptions, notes: list[str]) -> tuple[Problem, ...]:
    """Verifies the files whose rows are to be read.

    Args:
      one: whose files.
      options: `verify` counts.
      notes: gets a note if only sizes are looked at.

    Returns:
      The problems.
    """
    if options.verify == 'size':
        notes.append(f'{one.where}: {_NOT_VERIFIED}')
    return choice.damage(one.prefix, options, one.known)


def _can_be_table(tensor: Tensor) -> bool:
    return (len(tensor.shape) == 2 and tensor.rows > 0 and tensor.is_float
            and all(piece.first_row != NO_ROW for piece in tensor.pieces))


def report_of(paths: Sequence[str], look: Callable[[], Report]) -> Report:
    """Returns a report, which is made again if a job deleted one of its checkpoints meanwhile.

    Args:
      paths: of checkpoints, or of directories in which one is chosen.
      look: makes the report.

    Raises:
      CheckpointError: E628 if a checkpoint that was named was deleted.
      CorruptCheckpointError: if `look` raises it and nothing changed.
    """
    names = [path if os.path.isdir(path) or (part := parse(path)) is None else part.checkpoint
             for path in paths]
    states = [watch(name) for name in names if os.path.isdir(name) or signature(name)]
    return steady(look, lambda: [state() for state in states],
                  lambda report: report.data.get('findings'))
