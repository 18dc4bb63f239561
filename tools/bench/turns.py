"""Lets two trainings of one process take turns, a window at a time."""

import threading
import time


class EndOfBench(Exception):
    """Ends a training without a last checkpoint."""


class InTurns:
    """Trains in a thread, a window at a time. A window is so many steps.

    Derived classes have a method `train`, which calls `begin` before each window and `end` after
    it, until `begin` raises `EndOfBench`.
    """

    def __init__(self, steps):
        self._steps = steps
        self._turn, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._ends, self._took, self._failure = False, 0.0, None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._wait()

    def window(self):
        """Milliseconds per step."""
        self._turn.release()
        self._wait()
        return 1e3 * self._took / self._steps

    def close(self):
        """Ends it."""
        self._ends = True
        self._turn.release()
        self._thread.join()

    def begin(self):
        """Gives the turn away, and begins a window when it is back."""
        self._done.release()
        self._turn.acquire()
        if self._ends:
            raise EndOfBench
        self._began = time.perf_counter()

    def end(self):
        """Looks at the clock."""
        self._took = time.perf_counter() - self._began

    def _wait(self):
        self._done.acquire()
        if self._failure is not None:
            raise self._failure

    def _run(self):
        try:
            self.train()
        except EndOfBench:
            pass
        except BaseException as error:  # For the other thread, whatever it is.
            self._failure = error
            self._done.release()
