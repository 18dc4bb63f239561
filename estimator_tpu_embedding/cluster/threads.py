"""Starts threads that may wait for a silent worker; at the end of the process it awaits them.

A thread that comes out of TensorFlow while Python ends would abort the process.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

_begun: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_lock = threading.RLock()  # A thread is remembered while the garbage collector runs, too.


def begin(work: Callable[..., None], name: str, *arguments: Any) -> threading.Thread:
    """Starts a thread that ends by itself, unless some worker is silent for ever."""
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    thread.start()
    remember(thread)
    return thread


def remember(thread: threading.Thread) -> None:
    """Lets `wait` wait for a thread, too."""
    with _lock:
        _begun.add(thread)


def wait(seconds: float) -> None:
    """Waits for the threads that were begun or remembered, so long at most."""
    end = time.monotonic() + seconds
    with _lock:
        alive = [thread for thread in _begun if thread is not threading.current_thread()]
    for thread in alive:
        thread.join(max(end - time.monotonic(), 0))
