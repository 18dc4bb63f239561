"""Holds a logger and hooks of the original's module `tpu_estimator` that scripts use."""

from __future__ import annotations

import time
from typing import Any

import tensorflow.compat.v1 as tf


class PeriodicLogger:
    """Logs at most once in a number of seconds."""

    def __init__(self, seconds: float):
        """Logs the first message, and one again when `seconds` have passed since the last."""
        self._seconds = seconds
        self._next = 0.0

    def log(self, msg: str, *args: Any, **kw: Any) -> None:
        """Logs as `tf.logging.info` does, unless it logged too short a time ago."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._seconds
            tf.logging.info(msg, *args, **kw)


class ExamplesPerSecondHook(tf.train.StepCounterHook):
    """Logs steps and examples per second, and writes summaries of them.

    A TPUEstimator does so by itself; this is for other loops.
    """

    def __init__(self, batch_size: int, every_n_steps: int | None = 100,
                 every_n_secs: float | None = None, output_dir: str | None = None,
                 summary_writer: Any = None):
        """Counts `batch_size` examples per step; for the others see `StepCounterHook`."""
        self._batch_size = batch_size
        super().__init__(every_n_steps=every_n_steps, every_n_secs=every_n_secs,
                         output_dir=output_dir, summary_writer=summary_writer)

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        """Logs and writes; `StepCounterHook` calls it when its time has come."""
        steps = elapsed_steps / elapsed_time
        rates = {'global_step/sec': steps, 'examples/sec': steps * self._batch_size}
        for tag, rate in rates.items():
            tf.logging.info('%s: %g', tag, rate)
        if self._summary_writer is not None:
            self._summary_writer.add_summary(tf.Summary(value=[
                tf.Summary.Value(tag=tag, simple_value=rate) for tag, rate in rates.items()
            ]), global_step)


class InstallSignalHandlerHook(tf.train.SessionRunHook):
    """Makes Ctrl-C end the run at once, which it does here without any hook."""
