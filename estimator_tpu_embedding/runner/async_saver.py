"""`AsyncCheckpointSaverHook` of `tensorflow.python.tpu.async_checkpoint`, which saves in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..checkpoint.commit import CommittingSaver
from ..checkpoint.manifest import StoredTable


class AsyncCheckpointSaverHook(tf.train.CheckpointSaverHook):
    """Saves between two runs, before training goes on.

    The original saves in a thread while variables change beneath it, skips a save that comes
    while one runs, and loses what such a thread was at when the process ends. On this system a
    save takes no TPU's time, so it is done at once.
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
          saver: that saves; if `None` that of `scaffold`, and without one that of the graph.
          checkpoint_basename: how the names of checkpoints begin.
          scaffold: of the model.
          listeners: called around each save.

        Raises:
          ValueError: if not exactly one of `save_secs` and `save_steps` is given, or `saver` and
            `scaffold` both are.
        """
        if saver is not None and scaffold is not None:
            raise ValueError('You cannot provide both saver and scaffold.')
        self._chosen = _ChosenSaver(saver, scaffold)
        super().__init__(checkpoint_dir, save_secs=save_secs, save_steps=save_steps,
                         saver=self._chosen, checkpoint_basename=checkpoint_basename,
                         listeners=list(listeners or ()))
        tf.logging.info('AsyncCheckpointSaverHook saves into %s between two loops, in no thread.',
                        checkpoint_dir)

    def commit(self, tables: dict[str, StoredTable], config: bytes) -> None:
        """Makes its checkpoints those of a job with tables; see `CommittingSaver`."""
        self._chosen.tables, self._chosen.config = tables, config


class _ChosenSaver:
    """The saver that the arguments of the hook name, once the graph is there."""

    def __init__(self, saver: Any, scaffold: Any):
        self._saver, self._scaffold = saver, scaffold
        self.tables: dict[str, StoredTable] = {}
        self.config = b''

    @property
    def saver_def(self) -> Any:
        return self._found().saver_def

    def save(self, session: tf.Session, save_path: str, global_step: int,
             write_meta_graph: bool = True) -> str:
        return CommittingSaver(self._found(), self.tables, self.config).save(
            session, save_path, global_step, write_meta_graph)

    def _found(self) -> Any:
        saver = self._saver or (self._scaffold and self._scaffold.saver)
        if saver:
            return saver
        savers = tf.get_collection(tf.GraphKeys.SAVERS)
        if len(savers) != 1:
            raise RuntimeError(f'The graph has {len(savers)} savers in the collection '
                               f'{tf.GraphKeys.SAVERS}. Pass a saver or scaffold.')
        return savers[0]
