"""Binds the arguments of `TPUEmbedding(...)` by the signature of TensorFlow 2.3 or a later one."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any


def _of_today(feature_config: Any, optimizer: Any,
              pipeline_execution_with_tensor_core: bool = False) -> None:
    """The signature of TensorFlow 2.4 and later."""


def _of_2_3(feature_config: Any, batch_size: int, optimizer: Any,
            pipeline_execution_with_tensor_core: bool = False,
            initialize_tpu_embedding: bool = True) -> None:
    """The signature of TensorFlow 2.3."""


TODAY = inspect.signature(_of_today)


def bound(args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments by name, with defaults; an int in the second place is a batch size.

    >>> bound(({}, 64, 'an optimizer'), {})['batch_size']
    64

    Raises:
      TypeError: as a call would.
    """
    is_of_2_3 = (len(args) > 1 and isinstance(args[1], int)
                 or not kwargs.keys().isdisjoint({'batch_size', 'initialize_tpu_embedding'}))
    found = (inspect.signature(_of_2_3) if is_of_2_3 else TODAY).bind(*args, **kwargs)
    found.apply_defaults()
    return found.arguments
