"""Readers beside a job that trains: what it deletes before it was read is replaced by the newest.

Between the choice of a checkpoint and its restore a graph is built, which takes seconds; a job may
have saved and deleted several by then.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from ..errors import CheckpointError, IncompatibleCheckpointError, Problem, shown
from . import recover, scaffolds
from .candidates import candidates
from .file_names import label, step_of
from .layout import Held
from .options import CheckpointOptions
from .restore import RestoringSaver, held_in, saver_of_all
from .steady import LOOKS, is_gone, rotated_away

_T = TypeVar('_T')


class Following:
    """The checkpoint that is read.

    Attributes:
      prefix: of it.
    """

    def __init__(self, directory: str, prefix: str, options: CheckpointOptions, *,
                 is_named: bool):
        """Begins with a checkpoint that is whole.

        Args:
          directory: where a later one is looked for.
          prefix: of the first.
          options: as `recover` takes them.
          is_named: whether somebody asked for that one: then no other takes its place.
        """
        self.prefix = prefix
        self._directory, self._options, self._is_named = directory, options, is_named

    def read(self, look: Callable[[str], _T]) -> _T:
        """What a function of a prefix returns, which is called again where that is gone.

        Raises:
          CheckpointError: E628 if a checkpoint that was named is gone, or one after the other.
          Whatever the function raises of a checkpoint that is there.
        """
        for _ in range(LOOKS):
            try:
                return look(self.prefix)
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
                self.prefix = found.prefix
        raise rotated_away(self.prefix)


def chosen(directory: str, named: str | None, options: CheckpointOptions) -> Following | None:
    """A checkpoint that somebody named, or the newest of a directory; verified in both cases.

    Raises:
      CorruptCheckpointError: as `recover.verify` or `recover.recover`; no other one takes the
        place of one that was named.
      CheckpointError: E628 if one that was named is not there, and newer ones are.
    """
    if not named:
        found = recover.recover(directory, options)
        return found and Following(directory, found.prefix, options, is_named=False)
    try:
        recover.verify(named, options)
    except CheckpointError as error:
        if is_gone(named) and _has_newer(named):
            raise rotated_away(named) from error
        raise
    return Following(directory, named, options, is_named=True)


def followed(scaffold: tf.train.Scaffold, following: Following) -> tf.train.Scaffold:
    """The scaffold, whose saver restores what is there when it is asked to restore."""
    saver = scaffold.saver or next(iter(tf.get_collection(tf.GraphKeys.SAVERS)), None)
    if isinstance(saver, (tf.train.Checkpoint, tf.compat.v2.train.Checkpoint)):
        return scaffold
    if saver is None:
        saver = saver_of_all()
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    return scaffolds.with_saver(scaffold, _FollowingSaver(saver, following))


class _FollowingSaver:
    """Another saver, whose methods it has, but that it restores what is there."""

    def __init__(self, saver: Any, following: Following):
        self._saver, self._following = saver, following
        self._given = following.prefix
        self._held = following.read(held_in)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def restore(self, session: tf.Session, save_path: str) -> None:
        """Restores all variables from a checkpoint, or from the one that took its place."""
        if save_path not in (self._given, self._following.prefix):
            self._saver.restore(session, save_path)
            return
        with session.graph.as_default():
            self._saver.build()
        self._following.read(lambda prefix: self._restore(session, prefix))

    def _restore(self, session: tf.Session, prefix: str) -> None:
        if prefix != self._held.prefix:
            _require_alike(self._held, held_in(prefix))
        if isinstance(self._saver, RestoringSaver):
            self._saver.checkpoint = prefix
        self._saver.restore(session, prefix)


def _require_alike(first: Held, later: Held) -> None:
    """Makes sure that what was planned for a checkpoint holds for another one, too."""
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
