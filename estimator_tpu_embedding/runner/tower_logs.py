"""Folds the log of a model that is built once per core: a record of core 0 is not repeated."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def folded(core_of_thread: Callable[[], int | None]) -> Iterator[None]:
    """Leaves out what other cores log as core 0 did, unless TensorFlow's logger debugs.

    Args:
      core_of_thread: returns the core whose model the calling thread builds; `None` outside.
    """
    if logging.getLogger('tensorflow').isEnabledFor(logging.DEBUG):
        yield
        return
    of_first: set[tuple[str, int, str]] = set()

    def is_news(record: logging.LogRecord) -> bool:
        core = core_of_thread()
        if core is None:
            return True
        try:
            key = record.name, record.levelno, record.getMessage()
        except Exception:  # Its handler will tell of a format that does not fit.
            return True
        if core == 0:
            of_first.add(key)
        return core == 0 or key not in of_first

    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    handlers = {handler for logger in loggers if isinstance(logger, logging.Logger)
                for handler in logger.handlers}
    for handler in handlers:
        handler.addFilter(is_news)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_news)
