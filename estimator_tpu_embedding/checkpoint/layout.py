"""Describes the variables of a checkpoint and of a graph, and a plan that fills one from the other.

`compare` makes the plan, and `restore` carries it out. This module also checks that a manifest
belongs to the checkpoint that it lies beside (E614).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Container, Mapping, Sequence
from typing import NamedTuple

from ..core.partition import Partition
from ..errors import CorruptCheckpointError, Problem, shown
from .bundle import Bundle
from .file_names import label, step_of
from .manifest import Manifest, StoredTable, read_manifest, tensors_of

Shape = Sequence[int | None] | None


class Held(NamedTuple):
    """What a checkpoint holds.

    Attributes:
      prefix: of the checkpoint.
      shapes: of all its tensors, by name.
      manifest: the one beside it; `None` if there is none.
      no_floats: names of the tensors that hold anything but floats.
    """

    prefix: str
    shapes: Mapping[str, Sequence[int]]
    manifest: Manifest | None
    no_floats: Collection[str] = ()

    @classmethod
    def of(cls, bundle: Bundle, manifest: Manifest | None) -> Held:
        """Describes a checkpoint that was opened."""
        tensors = bundle.tensors
        return cls(bundle.prefix, {name: tensor.shape for name, tensor in tensors.items()},
                   manifest, [name for name, tensor in tensors.items() if not tensor.is_float])

    @property
    def where(self) -> str:
        """The checkpoint, as messages call it."""
        return label(self.prefix)

    @property
    def tables(self) -> dict[str, StoredTable]:
        """The tables of its manifest, by variable name; none without a manifest."""
        return self.manifest.tables if self.manifest is not None else {}

    def lacking(self, variable: str, table: StoredTable) -> list[str]:
        """Returns the tensors of a table and its slots that are not there, or have another form."""
        return [name for name in tensors_of(variable, table)
                if tuple(self.shapes.get(name, ())) != (table.rows, table.width)
                or name in self.no_floats]


class Needed(NamedTuple):
    """The variables that a graph has.

    Attributes:
      shapes: the full shape of every variable, by checkpoint name; a dimension or all of it may
        be unknown.
      tables: by variable name, as a checkpoint of the graph would hold them.
      optional: variables that may be absent from the checkpoint, since the user restores them.
      trains: whether the graph writes the next checkpoint. Then its tables may begin anew, and a
        table that it lacks would be lost.
    """

    shapes: Mapping[str, Shape]
    tables: Mapping[str, StoredTable]
    optional: Container[str] = ()
    trains: bool = True


class Source(NamedTuple):
    """Where the rows of a variable come from.

    Attributes:
      tensor: the name of the stored tensor.
      stored: the order of its rows.
      here: the order of the rows of the variable.
    """

    tensor: str
    stored: Partition
    here: Partition

    @property
    def is_whole(self) -> bool:
        """Whether the tensor has a value for every row."""
        return self.stored.vocabulary_size == self.here.vocabulary_size

    def is_as_here(self, variable: str) -> bool:
        """Whether name, number of rows and order equal those of the variable."""
        return (self.tensor == variable and self.is_whole
                and self.stored.strategy == self.here.strategy
                and _hosts(self.stored) == _hosts(self.here))

    @property
    def lies_alike(self) -> bool:
        """Whether TensorFlow's own savers put every row into its place, perhaps in more memory."""
        return self.is_whole and (self.stored.stores_by_id and self.here.stores_by_id
                                  or self.is_as_here(self.tensor))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """How a graph gets the values of a checkpoint.

    Attributes:
      where: the checkpoint, as messages call it.
      streamed: the sources of the variables whose rows lie otherwise there than here, by variable;
        slots too.
      begun: variables that begin with their initial values.
      facts: facts for the user.
      suits_tensorflow: whether TensorFlow's own savers give the same.
    """

    where: str
    streamed: Mapping[str, Source]
    begun: tuple[str, ...]
    facts: tuple[str, ...]
    suits_tensorflow: bool

    @property
    def is_plain(self) -> bool:
        """Whether the checkpoint holds everything, in the same places as here."""
        return not self.streamed and not self.begun


def held_in(checkpoint: str) -> Held:
    """Reads what a checkpoint holds.

    Raises:
      CorruptCheckpointError: if it or its manifest cannot be read.
    """
    return Held.of(Bundle.open(checkpoint), read_manifest(checkpoint))


def check_step(checkpoint: str, manifest: Manifest | None) -> None:
    """Makes sure that a manifest says the step that the name of its checkpoint says.

    Raises:
      CorruptCheckpointError: E614 if not.
    """
    if manifest is not None and step_of(checkpoint) != manifest.step:
        raise _belongs_elsewhere(checkpoint, [_step_text(manifest)])


def check_manifest(held: Held) -> None:
    """Makes sure that a manifest belongs to the checkpoint that it lies beside.

    It must say the step in the name. Every tensor of its tables and slots must be there, with the
    shape that it says, and hold floats.

    Raises:
      CorruptCheckpointError: E614 with all that is not so.
    """
    untrue = []
    for variable, table in sorted(held.tables.items()):
        lacking = held.lacking(variable, table)
        if lacking:
            form = f'{table.rows} x {table.width}'
            tensors = ' and '.join(f'tensor "{shown(name)}"' for name in lacking)
            untrue.append(f'table "{shown(variable)}" of {form}, with floats of {form} in '
                          f'{tensors}')
    if held.manifest is not None and step_of(held.prefix) != held.manifest.step:
        untrue.append(_step_text(held.manifest))
    if untrue:
        raise _belongs_elsewhere(held.prefix, untrue)


def _step_text(manifest: Manifest) -> str:
    return f'step {manifest.step}'


def _belongs_elsewhere(checkpoint: str, untrue: Sequence[str]) -> CorruptCheckpointError:
    return CorruptCheckpointError(Problem(
        'E614', label(checkpoint), 'its manifest must say what it holds', ', '.join(untrue),
        'Restore both from the same copy.'))


def partition_of(table: StoredTable) -> Partition:
    """Returns the map between ids and stored rows."""
    return Partition(strategy=table.strategy, vocabulary_size=table.rows, num_hosts=table.hosts)


def tables_out_of_order(checkpoint: str | None) -> dict[str, StoredTable]:
    """Returns the tables of a checkpoint whose rows are not in the order of ids, by variable name.

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
    """Returns the number of hosts that have rows."""
    return min(order.num_hosts, order.vocabulary_size)
