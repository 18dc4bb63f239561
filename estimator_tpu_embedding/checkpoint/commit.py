"""Saving: TensorFlow's Saver, plus the manifest, minus overwriting what is already saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..version import VERSION
from .files import write_atomically
from .manifest import Manifest, StoredTable, manifest_path, orphaned_manifests
from .pieces import SaverBuilder


def default_saver(max_to_keep: int, keep_every_n_hours: float) -> tf.train.Saver:
    """A saver of everything, named and laid out as that of the original, but see `pieces`."""
    return tf.train.Saver(sharded=True, max_to_keep=max_to_keep,
                          keep_checkpoint_every_n_hours=keep_every_n_hours,
                          builder=SaverBuilder(), defer_build=True,
                          save_relative_paths=True)


def saver_of_iterators(saveables: Sequence[Any], max_to_keep: int) -> tf.train.Saver:
    """A saver of what `tf.data.experimental.make_saveable_from_iterator` gave."""
    return tf.train.Saver(saveables, sharded=True, max_to_keep=max_to_keep,
                          save_relative_paths=True)


class CommittingSaver:
    """Wraps a `tf.train.Saver` for `tf.train.CheckpointSaverHook(saver=...)`.

    The newest checkpoint is never written again: the hook saves once right after a restore,
    and a crash in that instant would destroy the only good checkpoint.
    """

    def __init__(self, saver: tf.train.Saver, tables: dict[str, StoredTable], config: bytes):
        """Wraps `saver`.

        Args:
          saver: built, or to be built before the first save.
          tables: what the checkpoints hold, by variable name; may be empty.
          config: see `Manifest`.
        """
        self._config = config
        self._saver = saver
        self._tables = tables

    @property
    def saver_def(self) -> Any:
        """The SaverDef of the wrapped saver."""
        return self._saver.saver_def

    def save(self, session: tf.Session, save_path: str, global_step: int,
             write_meta_graph: bool = True) -> str:
        """Saves `save_path-global_step` with its manifest, unless it is the newest already.

        Returns:
          The prefix of the checkpoint.
        """
        prefix = f'{save_path}-{global_step}'
        directory = os.path.dirname(prefix)
        if tf.train.latest_checkpoint(directory) == prefix:
            tf.logging.info('Step %d is saved already; %s is left as it is.', global_step,
                            prefix)
            return prefix
        if self._tables:
            # Before the data: a checkpoint of mod rows must never be seen without it.
            write_atomically(manifest_path(prefix), Manifest(
                step=int(global_step), tables=self._tables, config=self._config,
                created_by=f'estimator_tpu_embedding {VERSION}').to_json())
        self._saver.save(session, save_path, global_step=global_step,
                         write_meta_graph=write_meta_graph)
        for name in orphaned_manifests(directory):
            os.unlink(os.path.join(directory, name))
        return prefix
