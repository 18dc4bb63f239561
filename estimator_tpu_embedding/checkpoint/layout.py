"""What a checkpoint holds, what a graph has, and how the one becomes the other: plain facts."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from ..core.partition import Partition
from .file_names import label
from .manifest import Manifest, StoredTable, read_manifest

Shape = Sequence[int | None] | None


class Held(NamedTuple):
    """What is stored.

    Attributes:
      prefix: of the checkpoint.
      shapes: of all its tensors.
      manifest: beside it, or `None`.
    """

    prefix: str
    shapes: Mapping[str, Sequence[int]]
    manifest: Manifest | None

    @property
    def where(self) -> str:
        """How messages call it."""
        return label(self.prefix)

    @property
    def tables(self) -> dict[str, StoredTable]:
        """Those of its manifest, by variable name; none without one."""
        return self.manifest.tables if self.manifest is not None else {}


class Needed(NamedTuple):
    """What a graph has.

    Attributes:
      shapes: the full shape of every variable, by checkpoint name; a dimension or all of it may
        be unknown.
      tables: by variable name, as a checkpoint of the graph would hold them.
      optional: variables that may be absent, since the user restores them.
      trains: whether the next checkpoint comes of it: then tables may begin anew, and those that
        it lacks would be lost.
    """

    shapes: Mapping[str, Shape]
    tables: Mapping[str, StoredTable]
    optional: Container[str] = ()
    trains: bool = True


class Source(NamedTuple):
    """Where the rows of a variable come from: a tensor, the order of its rows, and theirs here."""

    tensor: str
    stored: Partition
    here: Partition

    @property
    def is_whole(self) -> bool:
        """Whether it has a value for every row."""
        return self.stored.vocabulary_size == self.here.vocabulary_size

    def is_as_here(self, variable: str) -> bool:
        """Whether name, rows and hosts are those of the variable."""
        return (self.tensor == variable and self.is_whole
                and self.stored.strategy == self.here.strategy
                and _hosts(self.stored) == _hosts(self.here))

    @property
    def lies_alike(self) -> bool:
        """Whether TensorFlow's own savers put every row into its place, be it in more memory."""
        return self.is_whole and (self.stored.stores_by_id and self.here.stores_by_id
                                  or self.is_as_here(self.tensor))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """How a graph gets the values of a checkpoint.

    Attributes:
      where: how messages call the checkpoint.
      streamed: where rows come from that do not lie as they do here, by variable, slots too.
      begun: variables that begin with their initial values.
      facts: what a user should know of it.
      suits_tensorflow: whether TensorFlow's own savers give the same.
    """

    where: str
    streamed: Mapping[str, Source]
    begun: tuple[str, ...]
    facts: tuple[str, ...]
    suits_tensorflow: bool

    @property
    def is_plain(self) -> bool:
        """Whether everything is there and lies as it does here."""
        return not self.streamed and not self.begun


def partition_of(table: StoredTable) -> Partition:
    """The map between ids and stored rows."""
    return Partition(strategy=table.strategy, vocabulary_size=table.rows, num_hosts=table.hosts)


def tables_out_of_order(checkpoint: str | None) -> dict[str, StoredTable]:
    """The tables of a checkpoint whose rows are not in the order of ids, by variable name.

    Args:
      checkpoint: its prefix; `None` is no checkpoint.

    Raises:
      CorruptCheckpointError: if its manifest cannot be read.
    """
    manifest = read_manifest(checkpoint) if checkpoint is not None else None
    return {name: table for name, table in sorted(
        (manifest.tables if manifest is not None else {}).items())
        if not partition_of(table).stores_by_id}


def _hosts(order: Partition) -> int:
    """How many hosts have rows, or would have, of an order that depends on them."""
    return min(order.num_hosts, order.vocabulary_size)
