"""Describes what a checkpoint of either API holds: tables, other variables, slots, the step."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from ..checkpoint.bundle import Bundle
from ..checkpoint.object_graph import GRAPH_KEY
from ..checkpoint.tensors import Tensor
from ..core.partition import Partition
from .names import Family


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable with the slots of its optimizer.

    Attributes:
      name: in TF1 the name of its tensor; in TF2 its path, or the name of the table.
      tensor: the name of its tensor.
      order: of the rows; `None` for a variable that is no table, or that is in the order of ids.
      is_table: whether it is an embedding table.
      may_be_table: whether it looks like one in TF1 whose order of rows nothing says.
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
    """

    bundle: Bundle
    variables: Sequence[Variable]
    step: str | None
    own: Mapping[str, str]
    aside: Collection[str] = ()
    config: bytes = b''

    @property
    def is_tf2(self) -> bool:
        """Whether it is a checkpoint of objects."""
        return is_tf2(self.bundle)

    @property
    def tables(self) -> list[Variable]:
        """The embedding tables."""
        return [one for one in self.variables if one.is_table]

    def tensor(self, name: str) -> Tensor:
        """Returns the description of a tensor."""
        return self.bundle.tensors[name]


def is_tf2(bundle: Bundle) -> bool:
    """Whether a checkpoint holds objects, as `tf.train.Checkpoint` writes them."""
    return GRAPH_KEY in bundle.tensors
