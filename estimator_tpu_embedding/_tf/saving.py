"""Savers, scaffolds, and the hooks that save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def add_listeners(saver_hook: Any, listeners: Any) -> None:
    """Adds saving listeners to an existing `CheckpointSaverHook`.

    The public way is its constructor only. Checked: 2.16-2.21.
    """
    own = saver_hook._listeners
    saver_hook._listeners = [*own, *(each for each in listeners if each not in own)]


def saving_listeners(saver_hook: Any) -> list[Any]:
    """Returns the listeners of a `CheckpointSaverHook`. Checked: 2.16-2.21."""
    return list(saver_hook._listeners)


def replace_saver(saver_hook: Any, wrap: Callable[[Any], Any]) -> Any:
    """Makes an existing `CheckpointSaverHook` save with another saver, and returns that saver.

    Checked: 2.16-2.21.

    Args:
      saver_hook: hook of a user, who may use it again for another graph.
      wrap: makes the other saver from the saver of the hook. It may not use that saver before
        there is a session, because nobody knows until then which saver it is.
    """
    class Chosen:
        def __getattr__(self, name: str) -> Any:
            return getattr(type(saver_hook)._get_saver(saver_hook), name)

    wrapped = wrap(Chosen())
    saver_hook._get_saver = lambda: wrapped
    return wrapped


def begin_saving(saver_hook: Any, session: Any, text_of: Callable[[Any], str]) -> None:
    """Does what `CheckpointSaverHook.after_create_session` does, with another printer of graphs.

    That writes `graph.pbtxt`, the graph for TensorBoard, and the first checkpoint. Its printer is
    written in Python and takes as long as all the rest. Checked: 2.16-2.21.

    Args:
      saver_hook: the hook.
      session: has just been made.
      text_of: returns the text of a `GraphDef`.
    """
    import os

    from tensorflow.python.framework import meta_graph
    from tensorflow.python.lib.io import file_io
    step = session.run(saver_hook._global_step_tensor)
    message = session.graph.as_graph_def(add_shapes=True)
    if saver_hook._save_graph_def:
        directory = saver_hook._checkpoint_dir
        file_io.recursive_create_dir(directory)
        file_io.atomic_write_string_to_file(
            os.path.join(directory, 'graph.pbtxt'), text_of(message))
    saver = saver_hook._get_saver()
    saver_hook._summary_writer.add_graph(session.graph)
    saver_hook._summary_writer.add_meta_graph(meta_graph.create_meta_graph_def(
        graph_def=message, saver_def=saver.saver_def if saver else None))
    saver_hook._save(session, step)
    saver_hook._timer.update_last_triggered_step(step)


def arrange_scaffold(scaffold: Any, saver: Any = None, init_fn: Any = None) -> None:
    """Gives an existing `tf.train.Scaffold` another saver or another `init_fn`.

    The public way is its constructor only. If a derived class has properties for them, these
    give way. `init_fn` takes a session. Checked: 2.16-2.21.
    """
    given = {name: value for name, value in (('saver', saver), ('init_fn', init_fn))
             if value is not None}
    for name, value in given.items():
        setattr(scaffold, f'_{name}', value)
    if init_fn is not None:  # A copy of the scaffold takes this one.
        scaffold._user_init_fn = lambda _, session: init_fn(session)
    from tensorflow.python.training import monitored_session
    base, cls = monitored_session.Scaffold, type(scaffold)
    own = {name: getattr(base, name) for name in given
           if getattr(cls, name) is not getattr(base, name)}
    if own:
        scaffold.__class__ = type(cls.__name__, (cls,), {'__module__': cls.__module__, **own})


def saver_builder() -> Any:
    """Returns the class whose instances build the operations of a `tf.train.Saver` by default.

    `tf.train.Saver(builder=...)` is public, but the base class of builders is private. The
    builder has a class `ResourceVariableSaveable`, whose `handle_op` is the variable's handle.
    A derived class may override `shards`, which takes all saveables on one device. It returns
    lists of them, and each list becomes a file. The device of the last file merges all files;
    `merging_device` is the one whose files come last. Checked: 2.16-2.21.
    """
    from tensorflow.python.training import saver

    class Builder(saver.BulkSaverBuilder):
        merging_device = ''

        def shards(self, saveables: list[Any]) -> list[list[Any]]:
            """Returns one list, so one file, as TensorFlow does."""
            return [saveables]

        def _GroupByDevices(self, saveables: list[Any]) -> list[tuple[str, list[Any]]]:
            groups = sorted(super()._GroupByDevices(saveables),
                            key=lambda group: group[0] == self.merging_device)
            return [(device, shard) for device, group in groups for shard in self.shards(group)]

    return Builder
