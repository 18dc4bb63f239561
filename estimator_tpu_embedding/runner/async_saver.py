"""`AsyncCheckpointSaverHook` of `tensorflow.python.tpu.async_checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


class AsyncCheckpointSaverHook(tf.train.CheckpointSaverHook):
    """Saves between two runs.

    The original saves in a thread while variables change beneath it, skips a save that comes
    while one runs, and loses what such a thread was at when the process ends. None of this happens
    here: TensorFlow writes the files before training goes on. In a TPUEstimator they are then
    checked, made durable and published in a thread, see `CheckpointOptions.asynchronous`; in
    another loop this is a `CheckpointSaverHook`.
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
        super().__init__(checkpoint_dir, save_secs=save_secs, save_steps=save_steps,
                         saver=saver, scaffold=scaffold, checkpoint_basename=checkpoint_basename,
                         listeners=list(listeners or ()))
