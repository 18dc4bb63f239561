"""Says where a checkpoint of TF2 has the objects of a program, and how one of TF1 orders rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..checkpoint.object_graph import Place, escaped, joined
from ..core.limits import MAX_HOSTS
from ..core.partition import STRATEGIES, Partition
from ..core.specs import is_count
from ..errors import Problem, quoted, shown
from .contents import Family

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

    def slots_of(self, family: Family, is_table: bool) -> tuple[str, ...]:
        """Returns the names of the slots of an optimizer there; none if there is no place."""
        if self.kind == TF1:
            return family.tf1 if is_table else family.train
        if not is_table:
            return family.keras
        if self.slots == KERAS:
            return family.keras if family.midlevel else ()
        return family.midlevel if self.kind != TFRS or family.layer else ()

    def places(self, name: str, family: Family | None, is_table: bool) -> list[Place]:
        """Returns the places in TF2 of a table or another variable, and of its slots."""
        slots = self.slots_of(family, is_table) if family is not None else ()
        own = Place(joined(self.tables_path, escaped(name))) if is_table else Place.of(name)
        if is_table and self.slots != KERAS:
            return [own, *(Place(joined(self.tables_path, escaped(f'{name}/{slot}')))
                           for slot in slots)]
        return [own, *(own._replace(optimizer=self.optimizer_path, slot=slot) for slot in slots)]

    def problems(self) -> Iterator[Problem]:
        """Yields a problem E654 for each value that a target cannot have."""
        for name, allowed in (('kind', KINDS), ('slots', (KERAS, MIDLEVEL)),
                              ('strategy', STRATEGIES)):
            if getattr(self, name) not in allowed:
                yield Problem('E654', f'Target.{name}', f'it must be one of {quoted(allowed)}',
                              shown(repr(getattr(self, name)), 200))
        if not is_count(self.hosts, 1, MAX_HOSTS):
            yield Problem('E654', 'Target.hosts', f'it must be an int from 1 to {MAX_HOSTS}',
                          shown(repr(self.hosts), 200))
