"""Says what checkpoints of both APIs hold, by which names, and what a program wants of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..checkpoint.bundle import Bundle
from ..checkpoint.object_graph import GRAPH_KEY, Place, escaped, joined
from ..checkpoint.tensors import Tensor
from ..core.limits import MAX_HOSTS
from ..core.partition import STRATEGIES, Partition
from ..core.specs import is_count
from ..errors import Problem, quoted, shown

TF1, TF2, TFRS = 'tf1', 'tf2', 'tfrs'
KINDS = (TF2, TFRS, TF1)
FLOAT32, INT64 = 1, 9
"""Numbers of the enum `DataType`."""
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


class Family(NamedTuple):
    """The slots of one optimizer, as each API names them; all in the same order."""

    name: str  # Of the optimizer, for people.
    tf1: tuple[str, ...] = ()  # The suffixes for tables of TPUEstimator.
    train: tuple[str, ...] = ()  # The suffixes for other variables, those of `tf.train`.
    midlevel: tuple[str, ...] = ()  # Of the TF2 class TPUEmbedding; empty if it lacks it.
    keras: tuple[str, ...] = ()  # Of the Keras optimizer; empty if there is none.
    layer: bool = False  # Whether the layer of TFRS takes it.


FAMILIES = (
    Family('Adagrad', ('Adagrad',), ('Adagrad',), ('accumulators',), ('accumulator',), True),
    Family('AdagradMomentum', ('AdagradMomentum/Accumulator', 'AdagradMomentum/Momentum'), (),
           ('accumulators', 'momenta')),
    Family('Adam', ('Adam/m', 'Adam/v'), ('Adam', 'Adam_1'), ('momenta', 'velocities'), ('m', 'v'),
           True),
    Family('FTRL', ('Ftrl', 'Ftrl_1'), ('Ftrl', 'Ftrl_1'), ('accumulators', 'linears'),
           ('accumulator', 'linear'), True),
    Family('Momentum', ('Momentum',), ('Momentum',), (), ('momentum',)),
    Family('RMSProp', ('RMSProp/ms', 'RMSProp/mom'), ('RMSProp', 'RMSProp_1'), (),
           ('rms', 'momentum')),
    Family('centered RMSProp', ('CenteredRMSProp/ms', 'CenteredRMSProp/mg', 'CenteredRMSProp/mom'),
           ('RMSProp', 'RMSProp_1', 'RMSProp_2'), (), ('rms', 'mg', 'momentum')),
    Family('Adadelta', (), ('Adadelta', 'Adadelta_1'), (), ('accum_grad', 'accum_var')),
    Family('Adam of BERT', (), ('adam_m', 'adam_v'), (), ('m', 'v')),
    Family('ProximalAdagrad', ('ProximalAdagrad',), ('ProximalAdagrad',)),
    Family('ProximalYogi', ('ProximalYogi', 'ProximalYogi_1')),
    Family('FrequencyEstimator', ('FrequencyEstimator',)),
    Family('Lion', ('Lion',)))
"""All optimizers with slots. Where a name could be of two, the first one counts."""


def recognized(present: Mapping[str, str], *ways: str) -> tuple[Family, tuple[str, ...]] | None:
    """Returns the optimizer to which slots belong, and its tensors in the order of its slots.

    `present` has the tensor of each slot of a variable, by the name of the slot; `ways` are fields
    of `Family`. The result is `None` if they are no complete set; of two sets the larger counts.

    >>> family, tensors = recognized({'Adam_1': 'w/Adam_1', 'Adam': 'w/Adam'}, 'tf1', 'train')
    >>> family.name, tensors
    ('Adam', ('w/Adam', 'w/Adam_1'))
    """
    sets = [(family, tuple(present[name] for name in names))
            for family in FAMILIES for way in ways
            if (names := getattr(family, way)) and present.keys() >= set(names)]
    return max(sets, key=lambda one: len(one[1]), default=None)  # The first of the largest.


def suffixes(*ways: str) -> Collection[str]:
    """Returns all names of slots by some fields of `Family`."""
    return {name for family in FAMILIES for way in ways for name in getattr(family, way)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable with the slots of its optimizer.

    Attributes:
      name: in TF1 the name of its tensor; in TF2 its path, or the name of the table.
      tensor: the name of its tensor.
      order: of the rows; `None` for a variable that is no table, or that is in the order of ids.
      is_table: whether it is an embedding table.
      may_be_table: whether it looks like a table of TF1 whose rows nothing says the order of.
      family: the optimizer; `None` if there are no slots.
      slots: tensors of its slots, in the order of the family.
    """

    name: str
    tensor: str
    order: Partition | None = None
    is_table: bool = False
    may_be_table: bool = False
    family: Family | None = None
    slots: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The tensors of a checkpoint, sorted by their meaning.

    Attributes:
      bundle: the checkpoint.
      variables: tables and others.
      step: the tensor of the global step; `None` if there is none.
      own: tensors that mean something in this API only, and what.
      aside: tensors of TF1 that only TF1 needs. A checkpoint of TF2 has them under the same names.
        Its graph of objects does not mention them, so TF2 overlooks them, and the way back finds
        them.
      config: the serialized config of its job; may be empty.
      names_in_config: how a config of TF1 calls tables, by their variables.
    """

    bundle: Bundle
    variables: Sequence[Variable]
    step: str | None
    own: Mapping[str, str]
    aside: Collection[str] = ()
    config: bytes = b''
    names_in_config: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def is_tf2(self) -> bool:
        """Whether it is a checkpoint of objects."""
        return is_tf2(self.bundle)

    @property
    def tables(self) -> list[Variable]:
        """The embedding tables."""
        return [one for one in self.variables if one.is_table]

    @property
    def others(self) -> Iterator[str]:
        """The tensors that are no variables."""
        yield from (*self.own, *self.aside, *filter(None, [self.step]))

    def tensor(self, name: str) -> Tensor:
        """Returns the description of a tensor."""
        return self.bundle.tensors[name]

    def text_of(self, tensor: str) -> str:
        """Returns how maps call a tensor that is no table: in TF2 by its path."""
        place = Place.of_key(tensor) if self.is_tf2 else None
        return tensor if place is None else str(place)


def is_tf2(bundle: Bundle) -> bool:
    """Whether a checkpoint holds objects, as `tf.train.Checkpoint` writes them."""
    return GRAPH_KEY in bundle.tensors


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
