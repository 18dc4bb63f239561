"""One checkpoint as the commands about them look into it."""

from __future__ import annotations

import functools
import hashlib
import os

from ..checkpoint.bundle import Bundle, opened
from ..checkpoint.file_names import label, manifest_path, step_of
from ..checkpoint.index import NO_ROW, Tensor
from ..checkpoint.manifest import StoredTable, read_manifest
from ..core.partition import Partition
from ..errors import Problem, shown
from ..proto import files, reading


class Stored:
    """One checkpoint to look into.

    Attributes:
      prefix: its path without a suffix.
      where: for the user, safe to print.
      manifest: of it, or `None`.
      bundle: its tensors.
      assumed: strategy and hosts that nobody but the user knows of; `None` with a manifest.
    """

    def __init__(self, prefix: str, assume: tuple[str, int] | None = None):
        """Opens it.

        Args:
          prefix: its path without a suffix.
          assume: strategy and hosts by which rows are ordered if no manifest says it.

        Raises:
          CorruptCheckpointError: if its manifest or its index cannot be read.
        """
        self.prefix = prefix
        self.where = reading.label(prefix)
        self.manifest = read_manifest(prefix)
        self.bundle = Bundle.open(prefix)
        self.assumed = assume if self.manifest is None else None

    @functools.cached_property
    def digest(self) -> str | None:
        """The SHA-256 of its manifest; `None` without one."""
        if self.manifest is None:
            return None
        with opened(self.prefix, os.path.basename(manifest_path(self.prefix))) as file:
            return hashlib.sha256(files.read_at_most(file, files.size_of(file))).hexdigest()

    @functools.cached_property
    def tables(self) -> dict[str, StoredTable]:
        """The tables by variable name; without a manifest all that can be, if one assumes so."""
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
        return {name: Partition(strategy=table.strategy, vocabulary_size=table.rows,
                                num_hosts=table.hosts)
                for variable, table in self.tables.items() for name in tensors_of(variable, table)}

    def problems(self) -> list[Problem]:
        """What the manifest says that is not so."""
        wrong = []
        for variable, table in sorted(self.tables.items()):
            for name in tensors_of(variable, table):
                tensor = self.bundle.tensors.get(name)
                if tensor is None or tensor.shape != (table.rows, table.width) or (
                        not _holds_floats(tensor)):
                    wrong.append(f'floats of {table.rows} x {table.width} in tensor '
                                 f'"{shown(name)}"')
        if self.manifest is not None and step_of(self.prefix) != self.manifest.step:
            wrong.append(f'step {self.manifest.step}')
        return [Problem('E614', label(self.prefix),
                        'its manifest must say what it holds', ', '.join(wrong),
                        'Restore both from the same copy.')] if wrong else []


def tensors_of(variable: str, table: StoredTable) -> list[str]:
    """The names of the tensors of a table and of its slots."""
    return [variable, *(f'{variable}/{slot}' for slot in table.slots)]


def _can_be_table(tensor: Tensor) -> bool:
    return (len(tensor.shape) == 2 and tensor.rows > 0 and _holds_floats(tensor)
            and all(piece.first_row != NO_ROW for piece in tensor.pieces))


def _holds_floats(tensor: Tensor) -> bool:
    return tensor.kind.startswith(('float', 'bfloat'))
