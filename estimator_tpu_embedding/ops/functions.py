"""Functions of TF2 that stay functions in the graphs that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


def not_inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that is traced once and not inlined into its callers.

    TensorFlow visits every operation of a branch that is not taken. So a rare branch is cheaper as
    one call. A frequent one is not: a call takes the time of some small operations.
    """
    return tf.function(function, autograph=False, experimental_attributes={'_noinline': True})
