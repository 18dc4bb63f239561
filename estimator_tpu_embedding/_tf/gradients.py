"""Gradients in graphs: how far TensorFlow looks for the operations between a loss and variables."""

from __future__ import annotations

import contextlib
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

_lock = threading.Lock()
_stock: list[Callable[..., Any]] = []


@contextlib.contextmanager
def bounded_gradients() -> Iterator[None]:
    """Lets `tf.gradients` visit only operations that its loss depends on, while this lasts.

    TensorFlow visits all operations that the variables reach, but uses only what the loss
    depends on. Replicas of a model share variables, so each would visit all replicas before it.
    Gradients stay the same, so it does not matter that other threads are bounded too.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import gradients_util
    with _lock:
        stock = _stock[0] if _stock else gradients_util._PendingCount
        gradients_util._PendingCount = _bounded(stock)
        _stock.append(stock)
    try:
        yield
    finally:
        with _lock:
            _stock.pop()
            if not _stock:
                gradients_util._PendingCount = stock


def _bounded(stock: Any) -> Callable[..., Any]:
    """Returns `_PendingCount` with another `_MarkReachedOps`, which knows where the walk ends."""

    def count(to_ops: Any, from_ops: Any, colocate: Any, func_graphs: Any, xs_set: Any) -> Any:
        if func_graphs:  # Tensors of one graph may be used in another.
            return stock(to_ops, from_ops, colocate, func_graphs, xs_set)
        bounded = types.FunctionType(stock.__code__, {
            **stock.__globals__, '_MarkReachedOps': lambda starts, reached, _: reached.update(
                _reached(starts, to_ops))})
        return bounded(to_ops, from_ops, colocate, func_graphs, xs_set)

    return count


def _reached(starts: Any, ends: Any) -> set[Any]:
    """Returns `starts`, and what they reach by differentiable tensors on the way to `ends`."""
    from tensorflow.python.eager import backprop_util
    users: dict[Any, list[tuple[Any, Any]]] = {}
    seen, pending = set(ends), list(ends)
    while pending:
        operation = pending.pop()
        for tensor in operation.inputs:
            users.setdefault(tensor.op, []).append((tensor, operation))
            if tensor.op not in seen:
                seen.add(tensor.op)
                pending.append(tensor.op)
    reached, pending = set(starts), list(starts)
    while pending:
        for tensor, user in users.get(pending.pop(), ()):
            if user not in reached and backprop_util.IsTrainable(tensor):
                reached.add(user)
                pending.append(user)
    return reached
