"""Functions of Python that a graph of another process may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def register_function(token: str, function: Callable[..., Any]) -> None:
    """Lets `tf.raw_ops.PyFunc(token=token)` call a function of this process, from any session.

    `tf.numpy_function` chooses the token by itself, so no other process could know it. The
    registry keeps no function alive: the caller must. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import script_ops
    script_ops._py_funcs._funcs[token] = function
