"""Saves and restores the states of the iterators of an input, beside the checkpoints of a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import CorruptCheckpointError, Problem, shown
from ..proto import files
from . import file_names, pointer


class IteratorStates:
    """The states beside the checkpoints of a model: `input.ckpt-7` belongs to `model.ckpt-7`.

    The file `checkpoint_input` lists them, as `checkpoint` lists the checkpoints of the model.
    """

    def __init__(self, directory: str, name: str, max_to_keep: int):
        """Names the files.

        `name` is `'input'`, or another one for each process that has an input. So many states are
        kept; older ones are deleted.
        """
        self._directory = directory
        self._prefix = os.path.join(directory, file_names.base_of_states(name))
        self._pointer = file_names.pointer_to_states(name)
        # One more than models, since a state is saved before its model.
        self._keep = max_to_keep + 1 if max_to_keep else max_to_keep
        self._saver: Any = None
        self._last: int | None = None
        self._seen: tuple[int, ...] = ()

    def build(self, saveables: Sequence[Any]) -> None:
        """Adds the operations that save and restore, one saveable per iterator."""
        self._saver = tf.train.Saver(
            saveables, sharded=True, max_to_keep=self._keep, save_relative_paths=True)

    def restore(self, session: tf.Session, step: int) -> bool:
        """Restores the state of a step, or the newest one if that step has none, if there is any.

        E627 if one of its files is no regular file.
        """
        state = pointer.read(self._directory, self._pointer)
        wanted = file_names.name_of(self._prefix, step)
        others = self._own([state.newest] if state else ())
        path = next((path for path in (wanted, *others) if _has_state(path)), None)
        if path is None:
            if step:
                tf.logging.warning('The model is at step %d, but there is no state of its input, '
                                   'which starts from its beginning.', step)
            return False
        if state is not None:
            self._saver.recover_last_checkpoints(self._own(state.all))
        self._last = step if path == wanted else None
        if path != wanted:
            tf.logging.warning('The model is at step %d, but the newest state of its input is '
                               '%s: some batches come twice, or not at all.', step, path)
        self._saver.restore(session, path)
        return True

    def _own(self, paths: Sequence[str]) -> list[str]:
        """Returns the paths that are states of these iterators; others must not be touched."""
        base = os.path.basename(self._prefix)
        names = [pointer.Pointer(path, ()).name_in(self._directory) for path in paths]
        return [os.path.join(self._directory, name) for name in names
                if name is not None and file_names.base_of(name) == base
                and file_names.step_of(name) is not None]

    def save(self, session: tf.Session, step: int) -> None:
        """Saves, unless that step is saved already."""
        if step == self._last:
            return
        tf.logging.info('Saving the state of the input for %d into %s.', step, self._prefix)
        self._saver.save(session, self._prefix, global_step=step,
                         latest_filename=self._pointer, write_meta_graph=False)
        self._last = step

    def has_new_model(self) -> bool:
        """Whether a checkpoint of the model was written since the last call."""
        try:
            status = os.stat(os.path.join(self._directory, file_names.POINTER))
        except FileNotFoundError:
            return False
        before, self._seen = self._seen, (status.st_ino, status.st_mtime_ns, status.st_size)
        return self._seen != before


def _has_state(prefix: str) -> bool:
    """Whether there is a state.

    E627 if one of its files is a pipe or the like. TensorFlow would wait for it when it reads the
    state, or saves that step again.
    """
    directory, base = os.path.split(prefix)
    names = [name for name in os.listdir(directory or '.')
             if name.startswith(file_names.beginning_of_files(base))]
    for name in names:
        try:
            files.open_regular(os.path.join(directory, name), follow=False).close()
        except OSError as error:
            raise CorruptCheckpointError(Problem(
                'E627', f'state of the input {shown(base, 255)}',
                f'its file {shown(name, 255)} must be a regular file that can be read',
                shown(error.strerror or error), 'Remove it: the input then starts from another '
                'state, or from its beginning.')) from error
    return base + file_names.INDEX in names
