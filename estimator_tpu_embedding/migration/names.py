"""Names the slots of optimizers as TF1, the TF2 class and Keras name them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Family(NamedTuple):
    """The slots of one optimizer, as each API names them; all in the same order.

    Attributes:
      name: of the optimizer, for people.
      tf1: the suffixes for tables of TPUEstimator.
      train: the suffixes for other variables, those of `tf.train`.
      midlevel: the names of the TF2 class TPUEmbedding; empty if it lacks the optimizer.
      keras: the names of the Keras optimizer; empty if there is none.
      layer: whether the layer of TFRS takes it.
    """

    name: str
    tf1: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    midlevel: tuple[str, ...] = ()
    keras: tuple[str, ...] = ()
    layer: bool = False


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

    Args:
      present: the tensor of each slot of a variable, by the name of the slot.
      *ways: fields of `Family` by which the slots may be named.

    Returns:
      `None` if they are no complete set. Of two sets the larger one counts.

    >>> family, tensors = recognized({'Adam_1': 'w/Adam_1', 'Adam': 'w/Adam'}, 'tf1', 'train')
    >>> family.name, tensors
    ('Adam', ('w/Adam', 'w/Adam_1'))
    """
    best: tuple[Family, tuple[str, ...]] | None = None
    for family in FAMILIES:
        for way in ways:
            names: tuple[str, ...] = getattr(family, way)
            if names and set(names) <= present.keys() and (
                    best is None or len(names) > len(best[1])):
                best = family, tuple(present[name] for name in names)
    return best


def suffixes(*ways: str) -> Collection[str]:
    """Returns all names of slots by some fields of `Family`."""
    return {name for family in FAMILIES for way in ways for name in getattr(family, way)}
