"""The exchange between cores and owners with native kernels: the same as `ops/exchange.py`.

Messages, links, scales, sums and gradients have the form that is described there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.exchange import Exchange
from ..native import library
from ..native.exchange import attributes
from ..ops.exchange import Split, weights_of
from ..ops.ids import IdBatch
from .backend import Examined
from .native import NativeEngine


def split(exchange: Exchange, batch: Mapping[str, IdBatch]) -> Split:
    """Splits the ids of one core, as `ops.exchange.split`. It refuses ids beyond a table."""
    own = [batch[feature.name] for feature in exchange.features]
    messages, links, scales = _operations().ete_split(
        samples=[one.samples for one in own], ids=[one.ids for one in own],
        weights=[weights_of(one) for feature, one in zip(exchange.features, own)
                 if feature.weight_feature],
        H=len(exchange.owners), **attributes(exchange))
    return Split([_vector(each) for each in messages], [_vector(each) for each in links],
                 _vector(scales))


def merge(exchange: Exchange, sums: Sequence[tf.Tensor], links: Sequence[tf.Tensor],
          scales: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the activations of a core, as `ops.exchange.merge`."""
    merged = _operations().ete_merge(
        sums=sums, links=links, scales=scales, F=len(exchange.features),
        **attributes(exchange))
    return {feature.name: tf.reshape(one, exchange.plan.output_shape(feature))
            for feature, one in zip(exchange.features, merged)}


def spread(exchange: Exchange, gradients: Mapping[str, tf.Tensor],
           links: Sequence[tf.Tensor], scales: tf.Tensor) -> list[tf.Tensor]:
    """Returns the gradients for each owner, as `ops.exchange.spread`."""
    return [_vector(each) for each in _operations().ete_spread(
        gradients=[gradients[feature.name] for feature in exchange.features],
        links=links, scales=scales, **attributes(exchange))]


def _vector(tensor: tf.Tensor) -> tf.Tensor:
    """Tells TensorFlow that a tensor is a vector, so that it can be packed with others."""
    tensor.set_shape([None])
    return tensor


def _operations() -> Any:
    return library.load()


class NativeOwner:
    """An owner that is a native engine. See `owner.Owner`.

    It refuses a message that is none, whatever is in it.
    """

    kernels = 'native'

    def __init__(self, engine: NativeEngine):
        """Makes an engine whose plan has one host an owner."""
        self.plan = engine.plan
        self.kinds = [tf.int32, tf.int32]  # Grouped ids; how many samples each feature has.
        self.open, self.load = engine.open, engine.load
        self._engine = engine

    def pack(self, message: tf.Tensor) -> list[tf.Tensor]:
        return list(_operations().ete_group_message(engine=self._engine.handle, message=message))

    def unpack(self, packed: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
        return self._engine.unpack(packed[:-1])

    def lookup(self, packed: Sequence[tf.Tensor]) -> tf.Tensor:
        grouped, lengths = packed
        return _vector(_operations().ete_lookup_parts(
            engine=self._engine.now_attached(), grouped=grouped, lengths=lengths, handles=[]))

    def examine(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[tf.Tensor],
                step: tf.Tensor) -> Examined:
        names = [table.name for table in self.plan.tables]
        parts = {'grouped': [grouped for grouped, _ in packed],
                 'lengths': [lengths for _, lengths in packed], 'parts': list(gradients)}

        def write(rates: Mapping[str, tf.Tensor]) -> tf.Tensor:
            done = _operations().ete_update_parts(
                engine=self._engine.now_attached(), rates=tf.stack([rates[name] for name in names]),
                counted=[0], handles=[], **parts)  # Who calls this has seen all counts.
            with tf.control_dependencies([done]):
                attached = self._engine.require_attached(step)
            with tf.control_dependencies([attached]):
                return tf.constant(True)

        nonfinite = _operations().ete_count_parts(engine=self._engine.handle, **parts)
        return Examined(tf.ensure_shape(nonfinite, [len(names)]), write)
