"""Summaries that cannot be written: they are dropped, and training goes on."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint import files
from ..errors import Problem, shown
from .progress import announce

FAILURES = (tf.errors.OpError, OSError, RuntimeError)
"""What TensorFlow raises when it cannot write an event: a RuntimeError where its thread failed."""


def warn(directory: str, error: Exception) -> None:
    """Says once that a directory gets no more summaries."""
    tf.logging.warning('%s', Problem(
        'W806', f'summaries in {shown(directory, 200)}', 'event files should be writable',
        shown(error, 200), 'What is run goes on without them; checkpoints are written as ever.'))


@contextlib.contextmanager
def survived(directory: str) -> Iterator[None]:
    """Lets the body, which writes event files into a directory, fail with a warning."""
    try:
        yield
    except FAILURES as error:
        warn(directory, error)


class SurvivingWriter:
    """Stands for the event writer of a `tf.summary.FileWriter`; its errors end nothing.

    On a full disk TensorFlow loses some events without a word, for others it raises what its
    thread has met, from whichever call comes next: that may be one of the hook that saves
    checkpoints. After that it drops all events silently. So the room is looked at here.

    Attributes:
      dropped: how many events came when nothing could be written any more.
      has_failed: whether that is so.
    """

    def __init__(self, writer: Any):
        """Hands on to `writer`, a `tf.summary` event writer."""
        self._writer = writer
        self.dropped, self.has_failed = 0, False

    def get_logdir(self) -> str:
        """The directory."""
        return str(self._writer.get_logdir())

    def add_event(self, event: Any) -> None:
        """Writes it some time later."""
        self._try(self._require_room)
        self._try(functools.partial(self._writer.add_event, event))
        self.dropped += self.has_failed

    def flush(self) -> None:
        """Waits until all is written."""
        self._try(self._writer.flush)
        self._try(self._require_room)

    def close(self) -> None:
        """As `flush`, and gives the file back in any case."""
        self.flush()
        with contextlib.suppress(*FAILURES):
            self._writer.close()

    def reopen(self) -> None:
        """Begins another file."""
        self.dropped, self.has_failed = 0, False
        self._writer.reopen()

    def _require_room(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # It may be a URL.
            files.require_room(self.get_logdir())

    def _try(self, call: Callable[[], None]) -> None:
        if self.has_failed:
            return
        try:
            call()
        except FAILURES as error:
            self.has_failed = True
            warn(self.get_logdir(), error)


class SummariesSurvive(tf.train.SessionRunHook):
    """Keeps errors of event files from ending a run; comes after all hooks that write them."""

    def __init__(self) -> None:
        self._writers: list[SurvivingWriter] = []

    def begin(self) -> None:
        """Takes care of the writers that the hooks share by directory."""
        for writer in _tf.cached_summary_writers():
            if not isinstance(writer.event_writer, SurvivingWriter):
                writer.event_writer = SurvivingWriter(writer.event_writer)
            elif writer.event_writer.has_failed:  # In a run before this one.
                writer.event_writer.reopen()
            self._writers.append(writer.event_writer)

    def end(self, session: tf.Session) -> None:
        """Says what was lost."""
        for writer in self._writers:
            if writer.has_failed:
                announce(f'summaries in {shown(writer.get_logdir(), 200)}: {writer.dropped} or '
                         'more events were not written')
