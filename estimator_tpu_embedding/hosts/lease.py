"""Keeps an engine that functions use open while its variables exist, and closes it afterwards.

In a graph a session owns its engine. Functions have no session: there an engine is closed when the
last variable of its tables is garbage.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping

import tensorflow.compat.v1 as tf

from .. import _tf
from ..native import library
from .tables import HostedTable, parts_of


def attach(tables: Mapping[str, HostedTable], handle: tf.Tensor | None,
           settle: Callable[[], None]) -> None:
    """Attaches variables to an engine, which stays open as long as one of them exists.

    Args:
      tables: of `native.owned.OwnedVariable`.
      handle: of the native engine; `None` for the stock engine, which need not be closed.
      settle: a method that makes pending updates, called before a variable is read. It is kept by
        a weak reference: updates that are pending end with its object.
    """
    lease = None if handle is None else _Lease(handle)
    weak = weakref.WeakMethod(settle)
    for number, part in enumerate(parts_of(tables)):
        part.attach(handle, number, functools.partial(_before_read, lease, weak))


class _Lease:
    """Closes an engine when it is garbage itself."""

    def __init__(self, handle: tf.Tensor):
        closer = weakref.finalize(self, _close, handle)
        closer.atexit = False  # TensorFlow may be gone then, and so is the memory soon.


def _close(handle: tf.Tensor) -> None:
    """Closes an engine at once, even where a function is being traced, which may hold locks."""
    with _tf.eager_mode():
        library.load().ete_close(handle)


def _before_read(lease: _Lease | None, settle: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Makes pending updates, if the object of `settle` still exists."""
    del lease  # The variable that has this function must hold it.
    function = settle()
    if function is not None:
        function()
