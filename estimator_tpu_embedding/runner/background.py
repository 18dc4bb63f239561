"""Does one piece of work at a time in a thread beside the training."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from absl import logging


class Background:
    """Does pieces of work one after another, each in a thread; `wait` raises their errors.

    An error is raised once.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Background:
        return self

    def __exit__(self, kind: Any, error: Any, frames: Any) -> None:
        """Waits for the work; only logs its error if the body has raised another one."""
        try:
            self.wait()
        except Exception as own:
            if error is None:
                raise
            logging.error('Meanwhile in the background: %s', own)

    def submit(self, work: Callable[[], None]) -> None:
        """Begins a piece of work when the one before has ended.

        Raises:
          The error of the one before.
        """
        self.wait()
        self._thread = threading.Thread(
            target=self._do, args=[work], name='commit-checkpoint', daemon=False)
        self._thread.start()

    def wait(self) -> None:
        """Waits for the end of the work.

        Raises:
          The error of the work.
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
        except BaseException as error:  # The thread that waits raises it.
            self._error = error
