"""Says once that under a CPU strategy the model's optimizer trains the tables of a TFRS layer.

There the layer is made of `TPUEmbeddingForServing`, whose tables are trainable variables. That is
documented behaviour, and stays. But a job that was meant for a TPU gets other numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from .. import _tf
from ..errors import Problem, quoted

_MARK = '_etpe_tells_who_trains'


def tell_who_trains() -> None:
    """Makes `TPUEmbeddingForServing` warn, once per process, when its tables are first trained.

    A look-up within a `tf.GradientTape` is taken for training, in `fit` as in loops of users.
    """
    cls = tf.tpu.experimental.embedding.TPUEmbeddingForServing
    look_up = cls.embedding_lookup
    if hasattr(look_up, _MARK):
        return  # An earlier install() did it.

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

    setattr(tell_and_look_up, _MARK, True)
    cls.embedding_lookup = tell_and_look_up


def _tell(tables: Sequence[str]) -> None:
    strategy = (type(tf.distribute.get_strategy()).__name__ if tf.distribute.has_strategy()
                else 'no strategy')
    tf.compat.v1.logging.warning('%s', Problem(
        'W008', f'table {quoted(tables)}', "the optimizer that applies the model's gradients "
        'trains it, and not its own by the rules of the TPU', strategy,
        'For those, create the model in the scope of a tf.distribute.TPUStrategy, under etpe run '
        '--hosts H --cores C.'))
