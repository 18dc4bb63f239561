"""`tf.contrib.training`: hyper-parameters, and waiting for checkpoints."""

from __future__ import annotations

from typing import Any

from . import same
from .hparams import HParams, parse_values

NAMES: dict[str, Any] = {**same.names_of('training'), 'HParams': HParams,
                         'parse_values': parse_values}
