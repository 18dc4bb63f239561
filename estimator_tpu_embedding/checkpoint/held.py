"""Describes the variables of a checkpoint and of a graph, and a plan that fills one from the other.

`compare` makes the plan, and `restore` carries it out. This module also checks that a manifest
belongs to the checkpoint that it lies beside (E614), and finds the slots of tables by their names.
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

CPU_SUFFIXES = {
    'Adam/m': 'Adam', 'Adam/v': 'Adam_1', 'RMSProp/ms': 'RMSProp', 'RMSProp/mom': 'RMSProp_1',
    'CenteredRMSProp/ms': 'RMSProp', 'CenteredRMSProp/mg': 'RMSProp_1',
    'CenteredRMSProp/mom': 'RMSProp_2'}
"""The name of a slot on the TPU -> its name in `tf.train`, as in jobs with use_tpu=False."""

SUFFIXES = frozenset({
    *CPU_SUFFIXES, *CPU_SUFFIXES.values(), 'Adagrad', 'AdagradMomentum/Accumulator',
    'AdagradMomentum/Momentum', 'ProximalAdagrad', 'Ftrl', 'Ftrl_1', 'Momentum', 'ProximalYogi',
    'ProximalYogi_1', 'FrequencyEstimator', 'Adadelta', 'Adadelta_1', 'Lion'})
"""All names of slots; other tensors below a table, such as moving averages, are no slots."""


class Held:
    """What an opened checkpoint holds: its index and its manifest, read once and passed on.

    Attributes:
      bundle: its tensors.
      manifest: the one beside it; `None` if there is none.
      shapes: of all its tensors, by name.
    """

    def __init__(self, bundle: Bundle, manifest: Manifest | None):
        """Takes what was read."""
        self.bundle, self.manifest = bundle, manifest
        self.shapes = {name: tensor.shape for name, tensor in bundle.tensors.items()}

    @classmethod
    def open(cls, checkpoint: str) -> Held:
        """Reads what a checkpoint holds.

        Raises:
          CorruptCheckpointError: if it or its manifest cannot be read.
        """
        return cls(Bundle.open(checkpoint), read_manifest(checkpoint))

    @property
    def prefix(self) -> str:
        """Its path without a suffix."""
        return self.bundle.prefix

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
                if self.shapes.get(name) != (table.rows, table.width)
                or not self.bundle.tensors[name].is_float]


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
        untrue.append(f'step {held.manifest.step}')
    if untrue:
        raise CorruptCheckpointError(Problem(
            'E614', held.where, 'its manifest must say what it holds', ', '.join(untrue),
            'Restore both from the same copy.'))


def partition_of(table: StoredTable) -> Partition:
    """Returns the map between ids and stored rows."""
    return Partition(strategy=table.strategy, vocabulary_size=table.rows, num_hosts=table.hosts)


def tables_out_of_order(manifest: Manifest | None) -> dict[str, StoredTable]:
    """Returns the tables of a manifest whose rows are not in the order of ids, by variable name."""
    return {} if manifest is None else {
        name: table for name, table in sorted(manifest.tables.items())
        if not partition_of(table).stores_by_id}


def _hosts(order: Partition) -> int:
    """Returns the number of hosts that have rows."""
    return min(order.num_hosts, order.vocabulary_size)


def stored_slots(held: Held, table: str, shape: Sequence[int]) -> frozenset[str]:
    """Returns the suffixes of the slots that are stored for a table of that shape."""
    named = held.tables[table].slots if table in held.tables else SUFFIXES
    return frozenset(suffix for suffix in named
                     if list(held.shapes.get(f'{table}/{suffix}', ())) == list(shape))


def is_slot(tensor: str, tensors: Collection[str]) -> bool:
    """Whether a tensor has the name of a slot of another one.

    >>> is_slot('t/Adam/m', ['t', 't/Adam/m'])
    True
    """
    return any(tensor.endswith(f'/{suffix}') and tensor.removesuffix(f'/{suffix}') in tensors
               for suffix in SUFFIXES)


def names_there(wanted: Sequence[str], stored: Collection[str]) -> dict[str, str]:
    """Returns the names of slots in a checkpoint, by their names in the job.

    Names of a job without a TPU count only if their number is the same: with three slots the second
    slot of RMSProp means something else.

    >>> names_there(['RMSProp/ms', 'RMSProp/mom'], ['RMSProp', 'RMSProp_1'])
    {'RMSProp/ms': 'RMSProp', 'RMSProp/mom': 'RMSProp_1'}
    >>> names_there(['RMSProp/ms', 'RMSProp/mom'], ['RMSProp', 'RMSProp_1', 'RMSProp_2'])
    {'RMSProp/ms': 'RMSProp/ms', 'RMSProp/mom': 'RMSProp/mom'}
    """
    names = {slot: CPU_SUFFIXES.get(slot, slot) for slot in wanted}
    return names if set(names.values()) == set(stored) else {slot: slot for slot in wanted}
