"""`tf.contrib.training`: hyper-parameters, and waiting for checkpoints."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .hparams import HParams, parse_values

NAMES: dict[str, Any] = {
    'HParams': HParams, 'checkpoints_iterator': tf.train.checkpoints_iterator,
    'parse_values': parse_values}
