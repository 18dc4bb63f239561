"""Replaces `tf.distribute.TPUStrategy` and `TPUEmbedding` by the emulated classes of `midlevel`.

The other classes of `tf.tpu.experimental.embedding` stay TensorFlow's own. They work on a CPU once
they take the strategy for one of a TPU. To tell, they look into the module that defines
TPUStrategy, so the emulated class is put there, too.

Under a CPU strategy a layer of TFRS is made of `TPUEmbeddingForServing`, whose tables are trainable
variables: the model's optimizer trains them. That is documented behaviour, and stays. But a job
that was meant for a TPU gets other numbers, so its first training says so.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from .. import _tf
from .._tf import distribute
from ..errors import Problem, quoted
from ..midlevel import strategy
from ..midlevel.tpu_embedding_v2 import TPUEmbedding
from . import import_paths


def put_in_place() -> None:
    """Replaces `TPUStrategy`, `InputOptions` and `TPUEmbedding` in every module that has them.

    The module `tensorflow.python.tpu.tpu_embedding_v2` keeps its own `TPUEmbedding`, because
    TensorFlow saves objects of that class in a special way.
    """
    module = distribute.tpu_strategy_module()
    for cls in (strategy.TPUStrategyV2, strategy.TPUStrategy, strategy.TPUStrategyV1):
        setattr(module, cls.__name__, cls)
    import_paths.put('distribute', import_paths.V2_ROOTS, TPUStrategy=strategy.TPUStrategyV2,
                     InputOptions=strategy.InputOptions)
    import_paths.put('distribute.experimental', import_paths.V2_ROOTS,
                     TPUStrategy=strategy.TPUStrategy)
    import_paths.put('distribute.experimental', import_paths.V1_ROOTS,
                     TPUStrategy=strategy.TPUStrategyV1)
    import_paths.put('tpu.experimental.embedding', TPUEmbedding=TPUEmbedding)


@functools.cache
def tell_who_trains() -> None:
    """Makes `TPUEmbeddingForServing` warn, once per process, when its tables are first trained.

    A look-up within a `tf.GradientTape` is taken for training, in `fit` as in loops of users.
    """
    cls = tf.tpu.experimental.embedding.TPUEmbeddingForServing
    look_up = cls.embedding_lookup
    told: list[bool] = []

    @functools.wraps(look_up)
    @tf.autograph.experimental.do_not_convert
    def tell_and_look_up(self: Any, features: Any, weights: Any = None) -> Any:
        if _tf.is_recording_gradients():
            names = [table.name for table in self.embedding_tables if table.optimizer is not None]
            if names and not told:
                told.append(True)
                _tell(names)
        return look_up(self, features, weights)

    cls.embedding_lookup = tell_and_look_up


def _tell(tables: Sequence[str]) -> None:
    strategy = (type(tf.distribute.get_strategy()).__name__ if tf.distribute.has_strategy()
                else 'no strategy')
    tf.compat.v1.logging.warning('%s', Problem(
        'W008', f'table {quoted(tables)}', "the optimizer that applies the model's gradients "
        'trains it, and not its own by the rules of the TPU', strategy,
        'For those, create the model in the scope of a tf.distribute.TPUStrategy, under etpe run '
        '--hosts H --cores C.'))
