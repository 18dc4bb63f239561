"""Lets evaluations and predictions read a checkpoint while a training job may delete it.

A reader chooses a checkpoint, builds a graph for seconds, and then restores. By then the job may
have deleted that checkpoint. The reader then takes the newest one, unless the user named one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import CheckpointError, IncompatibleCheckpointError, Problem, shown
from . import recover
from .file_names import label, step_of
from .held import Held
from .options import CheckpointOptions
from .recover import Known, candidates
from .restore import RestoringSaver, saver_of_all, with_saver
from .rotation import LOOKS, is_gone, rotated_away


class Following:
    """The checkpoint that a reader follows: the chosen one, or the one that took its place.

    Attributes:
      held: the checkpoint.
    """

    def __init__(self, directory: str, held: Held, options: CheckpointOptions, *,
                 is_named: bool):
        """Begins with a whole checkpoint.

        Args:
          directory: where newer checkpoints appear.
          held: the chosen checkpoint.
          options: as `recover` takes them.
          is_named: whether the user named that checkpoint. Then no other takes its place.
        """
        self.held = held
        self._directory, self._options, self._is_named = directory, options, is_named

    @property
    def prefix(self) -> str:
        """The path of the checkpoint without a suffix."""
        return self.held.prefix

    def read(self, look: Callable[[Held], None]) -> None:
        """Calls a function with the checkpoint, and again with a newer one if that is gone.

        Args:
          look: the function; an error that it raises counts if the checkpoint is still there.

        Raises:
          CheckpointError: E628 if the checkpoint was named and is gone, or if one after the other
            is gone.
        """
        for _ in range(LOOKS):
            try:
                return look(self.held)
            except Exception as error:
                if not is_gone(self.prefix):
                    raise
                found = None if self._is_named else recover.recover(
                    self._directory, self._options)
                if found is None:
                    raise rotated_away(self.prefix) from error
                tf.logging.warning('%s', Problem(
                    'W619', label(self.prefix),
                    'a job deleted it before it was read',
                    f'{shown(os.path.basename(found.prefix), 255)} takes its place'))
                self.held = found.held
        raise rotated_away(self.prefix)


def chosen(directory: str, named: str | None, options: CheckpointOptions,
           known: Known | None = None) -> Following | None:
    """Returns the named checkpoint, or the newest of a directory; it is verified in both cases.

    Args:
      directory: where to look if none is named.
      named: the prefix of the one that somebody named.
      options: as `recover` takes them.
      known: likewise.

    Returns:
      `None` if there is none.

    Raises:
      CorruptCheckpointError: as `recover.verify` or `recover.recover`.
      CheckpointError: E628 if the named one is missing, and newer ones are there.
    """
    if not named:
        found = recover.recover(directory, options, known)
        return found and Following(directory, found.held, options, is_named=False)
    try:
        return Following(directory, recover.verify(named, options, known), options, is_named=True)
    except CheckpointError as error:
        if is_gone(named) and _has_newer(named):
            raise rotated_away(named) from error
        raise


def followed(scaffold: tf.train.Scaffold, following: Following) -> tf.train.Scaffold:
    """Returns the scaffold, with a saver that restores a checkpoint that still exists."""
    saver = scaffold.saver or next(iter(tf.get_collection(tf.GraphKeys.SAVERS)), None)
    if isinstance(saver, (tf.train.Checkpoint, tf.compat.v2.train.Checkpoint)):
        return scaffold
    if saver is None:
        saver = saver_of_all()
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    return with_saver(scaffold, _FollowingSaver(saver, following))


class _FollowingSaver:
    """Wraps a saver, so that it restores a checkpoint that still exists."""

    def __init__(self, saver: Any, following: Following):
        self._saver, self._following = saver, following
        self._planned = following.held

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def restore(self, session: tf.Session, save_path: str) -> None:
        """Restores all variables from a checkpoint, or from the one that took its place."""
        if save_path not in (self._planned.prefix, self._following.prefix):
            self._saver.restore(session, save_path)
            return
        with session.graph.as_default():
            self._saver.build()
        self._following.read(lambda held: self._restore(session, held))

    def _restore(self, session: tf.Session, held: Held) -> None:
        _require_alike(self._planned, held)
        if isinstance(self._saver, RestoringSaver):
            self._saver.checkpoint = held.prefix
        self._saver.restore(session, held.prefix)


def _require_alike(first: Held, later: Held) -> None:
    """Makes sure that the plan for a checkpoint suits the one that took its place."""
    if first.shapes != later.shapes or first.tables != later.tables:
        raise IncompatibleCheckpointError(Problem(
            'E629', later.where, f'the checkpoint that took the place of {first.where}, which a '
            'job deleted meanwhile, must hold what that held', 'other variables or tables',
            'Start again: it is compared with the model then.'))


def _has_newer(checkpoint: str) -> bool:
    directory = os.path.dirname(checkpoint) or '.'
    own = step_of(checkpoint)
    return os.path.isdir(directory) and any(
        step is not None and (own is None or step > own)
        for step in map(step_of, candidates(directory)))
