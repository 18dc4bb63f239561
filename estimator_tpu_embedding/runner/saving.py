"""Saves a training: the hooks that write checkpoints, and the work that can go on beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from .. import _tf
from ..checkpoint.saver import CommittingSaver, graph_written
from ..proto.text import graph_text


class AsyncCheckpointSaverHook(tf.train.CheckpointSaverHook):
    """Saves checkpoints between two runs of a session.

    The original saves in a thread, while variables change. It skips a save while another one is
    under way, and an end of the process loses a save that is not complete. None of this happens
    here: TensorFlow writes the files before training goes on. In a TPUEstimator a thread then
    checks the files, makes them durable and publishes them; see `CheckpointOptions.asynchronous`.
    In another loop this hook is a plain `CheckpointSaverHook`.
    """

    def __init__(self, checkpoint_dir: str, save_secs: int | None = None,
                 save_steps: int | None = None, saver: Any = None,
                 checkpoint_basename: str = 'model.ckpt', scaffold: Any = None,
                 listeners: Sequence[tf.train.CheckpointSaverListener] | None = None):
        """Saves into a directory.

        Args:
          checkpoint_dir: the directory.
          save_secs: seconds between two checkpoints.
          save_steps: steps between two, instead.
          saver: writes the files. If it is `None`, the saver of `scaffold` does, and without a
            scaffold the saver of the graph.
          checkpoint_basename: how the names of checkpoints begin.
          scaffold: of the model.
          listeners: called around each save.

        Raises:
          ValueError: if not exactly one of `save_secs` and `save_steps` is given, or if both
            `saver` and `scaffold` are.
        """
        if saver is not None and scaffold is not None:
            raise ValueError('You cannot provide both saver and scaffold.')
        super().__init__(checkpoint_dir, save_secs=save_secs, save_steps=save_steps,
                         saver=saver, scaffold=scaffold, checkpoint_basename=checkpoint_basename,
                         listeners=list(listeners or ()))


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


class SaverHook(tf.train.CheckpointSaverHook):
    """Saves checkpoints, and first the graph, for which the disk may have no room."""

    def begin(self) -> None:
        """Opens the events, which begin with the graph."""
        with _tf.graph_def_kept(tf.get_default_graph()):
            super().begin()

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        """Writes the graph, and the first checkpoint."""
        with graph_written(self._checkpoint_dir), _tf.graph_def_kept(session.graph):
            _tf.begin_saving(self, session, graph_text)


class SavesFinished(tf.train.SessionRunHook):
    """Ends a training only when its last checkpoint is committed."""

    def __init__(self, saver: CommittingSaver):
        """Waits for `saver`."""
        self._saver = saver

    def end(self, session: tf.Session) -> None:
        """Waits for the last save; raises its error."""
        self._saver.finish()
