"""Replaces `tf.distribute.TPUStrategy` and `TPUEmbedding` by the emulated classes of `midlevel`.

The other classes of `tf.tpu.experimental.embedding` stay TensorFlow's own. They work on a CPU once
they take the strategy for one of a TPU. To tell, they look into the module that defines
TPUStrategy, so the emulated class is put there, too.
"""

from __future__ import annotations

from .._tf import distribute
from ..midlevel import strategy
from ..midlevel.embedding import TPUEmbedding
from ..midlevel.system import InputOptions
from . import roads


def put_in_place() -> None:
    """Replaces `TPUStrategy`, `InputOptions` and `TPUEmbedding` in every module that has them.

    The module `tensorflow.python.tpu.tpu_embedding_v2` keeps its own `TPUEmbedding`, because
    TensorFlow saves objects of that class in a special way.
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
