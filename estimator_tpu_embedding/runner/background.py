"""One piece of work at a time beside the training."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from absl import logging


class Background:
    """A thread for each piece of work; what it raises is raised by the next `wait`, once."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Background:
        return self

    def __exit__(self, kind: Any, error: Any, frames: Any) -> None:
        """Waits; an error of the work is only logged if there is another one already."""
        try:
            self.wait()
        except Exception as own:
            if error is None:
                raise
            logging.error('Meanwhile in the background: %s', own)

    def submit(self, work: Callable[[], None]) -> None:
        """Begins with a piece of work, after the end of the one before.

        Raises:
          What that one raised.
        """
        self.wait()
        self._thread = threading.Thread(
            target=self._do, args=[work], name='commit-checkpoint', daemon=False)
        self._thread.start()

    def wait(self) -> None:
        """Waits for the end of the work.

        Raises:
          What it raised.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # It belongs to whoever waits.
            self._error = error
