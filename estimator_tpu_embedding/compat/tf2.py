"""Puts the TF2 side in its place: `tf.distribute.TPUStrategy` and `TPUEmbedding`.

The other classes of `tf.tpu.experimental.embedding` stay TensorFlow's own. What they lack on a CPU
is a strategy that they take for one of a TPU, and they ask the module that defines it.
"""

from __future__ import annotations

from .._tf import distribute
from ..midlevel import strategy
from ..midlevel.embedding import TPUEmbedding
from ..midlevel.system import InputOptions
from . import roads


def put_in_place() -> None:
    """Replaces the three classes `TPUStrategy`, `InputOptions` and `TPUEmbedding`, by every road.

    The module `tensorflow.python.tpu.tpu_embedding_v2` keeps its own `TPUEmbedding`: TensorFlow
    saves the objects of that one in a way of their own.
    """
    module = distribute.tpu_strategy_module()
    for cls in (strategy.TPUStrategyV2, strategy.TPUStrategy, strategy.TPUStrategyV1):
        setattr(module, cls.__name__, cls)
    for root in roads.V2_ROOTS:
        roads.put(roads.joined(root, 'distribute'), 'TPUStrategy', strategy.TPUStrategyV2)
        roads.put(roads.joined(root, 'distribute'), 'InputOptions', InputOptions)
        roads.put(roads.joined(root, 'distribute.experimental'), 'TPUStrategy',
                  strategy.TPUStrategy)
    for root in roads.V1_ROOTS:
        roads.put(roads.joined(root, 'distribute.experimental'), 'TPUStrategy',
                  strategy.TPUStrategyV1)
    for root in roads.ROOTS:
        roads.put(roads.joined(root, 'tpu.experimental.embedding'), 'TPUEmbedding', TPUEmbedding)
