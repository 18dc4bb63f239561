"""The hook `AsyncCheckpointSaverHook` of `tensorflow.python.tpu.async_checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


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
