"""Says where a checkpoint of TF2 has the objects of a program, and how one of TF1 orders rows."""

from __future__ import annotations

import dataclasses

from ..checkpoint.object_graph import Place, escaped, joined
from ..core.partition import Partition
from .names import Family

TF1, TF2, TFRS = 'tf1', 'tf2', 'tfrs'
KINDS = (TF2, TFRS, TF1)
KERAS, MIDLEVEL = 'keras', 'midlevel'
VARIABLES, PARAMETERS = '_variables', 'parameters'
"""A TPUEmbedding also has its variables at `_variables/<table>/parameters` and `.../<slot>`."""
COUNTER = 'save_counter'
"""A variable that `tf.train.Checkpoint` adds to every checkpoint: the number in its name.

The next one is then called by a higher number, and replaces none."""


def of_layer(path: str) -> str:
    """Returns the path of the TPUEmbedding of a layer of TFRS."""
    return joined(path, '_tpu_embedding')


def step_paths(optimizer_path: str) -> list[str]:
    """Returns the paths of the step in Keras optimizers, the one of `optimizers.legacy` first."""
    return [joined(optimizer_path, name) for name in ('iter', '_iterations')]


def step_path(optimizer_path: str) -> str:
    """Returns the path of the step in a Keras optimizer of `optimizers.legacy`."""
    return step_paths(optimizer_path)[0]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a program wants of its checkpoint.

    Attributes:
      kind: one of `KINDS`.
      object_path: where a program of TF2 has its TPUEmbedding or its layer.
      optimizer_path: where it has the Keras optimizer.
      slots: who has made the slots of tables, `KERAS` or `MIDLEVEL`.
      strategy: how a checkpoint of TF1 orders rows, `'div'` or `'mod'`.
      hosts: of such a checkpoint, on which the order of `mod` rows depends.
    """

    kind: str
    object_path: str = 'embedding'
    optimizer_path: str = 'optimizer'
    slots: str = MIDLEVEL
    strategy: str = 'div'
    hosts: int = 1

    @property
    def tables_path(self) -> str:
        """The path of the object whose attributes are the tables."""
        return of_layer(self.object_path) if self.kind == TFRS else self.object_path

    def order(self, rows: int) -> Partition:
        """Returns the order of rows in a checkpoint of TF1."""
        return Partition(strategy=self.strategy, vocabulary_size=rows, num_hosts=self.hosts)

    def lacks(self, family: Family, is_table: bool) -> bool:
        """Whether there is no place for the slots of an optimizer."""
        if self.kind == TF1:
            return not (family.tf1 if is_table else family.train)
        if not is_table:
            return not family.keras
        if self.slots == KERAS:
            return not family.keras or not family.midlevel
        return not family.midlevel or self.kind == TFRS and not family.layer

    def table_places(self, table: str, family: Family | None) -> list[Place]:
        """Returns the places of a table of TF2 and of its slots, in the order of the family."""
        own = Place(joined(self.tables_path, escaped(table)))
        if family is None:
            return [own]
        if self.slots == KERAS:
            return [own, *(own._replace(optimizer=self.optimizer_path, slot=slot)
                           for slot in family.keras)]
        return [own, *(Place(joined(self.tables_path, escaped(f'{table}/{slot}')))
                       for slot in family.midlevel)]

    def variable_places(self, path: str, family: Family | None) -> list[Place]:
        """Returns the places of another variable of TF2 and of its slots."""
        own = Place.of(path)
        return [own, *(own._replace(optimizer=self.optimizer_path, slot=slot)
                       for slot in (family.keras if family is not None else ()))]
