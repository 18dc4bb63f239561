"""Savers, the hooks and scaffolds that have them, and writers of summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def summary_writer_initializers() -> list[Any]:
    """Returns the operations that open the writers of V2 summaries in the default graph.

    `tf.compat.v1.summary.initialize` runs them only under a default writer.
    """
    from tensorflow.python.ops import summary_ops_v2
    return list(summary_ops_v2.summary_writer_initializer_op())


def cached_summary_writers() -> list[Any]:
    """Returns the writers of `tf.summary.FileWriterCache`."""
    from tensorflow.python.summary.writer import writer_cache
    return list(writer_cache.FileWriterCache._cache.values())


def directory_of_builder(builder: Any) -> Any:
    """Returns the directory that a `tf.saved_model.Builder` has made and writes."""
    return builder._export_dir


def saved_model_loaders() -> tuple[Any, Any]:
    """Returns the classes whose `load(tags=...)` loads a graph of TF1, in TF1 and in TF2."""
    from tensorflow.python.saved_model import load_v1_in_v2, loader_impl
    return loader_impl.SavedModelLoader, load_v1_in_v2._EagerSavedModelLoader


def add_listeners(saver_hook: Any, listeners: Any) -> None:
    """Adds saving listeners to an existing `CheckpointSaverHook`, unless it has them."""
    own = saver_hook._listeners
    saver_hook._listeners = [*own, *(each for each in listeners if each not in own)]


def saving_listeners(saver_hook: Any) -> list[Any]:
    """Returns the listeners of a `CheckpointSaverHook`."""
    return list(saver_hook._listeners)


def replace_saver(saver_hook: Any, wrap: Callable[[Any], Any]) -> Any:
    """Makes a `CheckpointSaverHook` save with what `wrap` makes of its saver, and returns that.

    The hook is a user's, who may use it again for another graph. `wrap` may not use its saver
    before there is a session, because nobody knows until then which saver it is.
    """
    class Chosen:
        def __getattr__(self, name: str) -> Any:
            return getattr(type(saver_hook)._get_saver(saver_hook), name)

    wrapped = wrap(Chosen())
    saver_hook._get_saver = lambda: wrapped
    return wrapped


def arrange_scaffold(scaffold: Any, saver: Any = None, init_fn: Any = None) -> None:
    """Gives an existing `tf.train.Scaffold` another saver or another `init_fn`.

    The public way is its constructor only. If a derived class has properties for them, these
    give way. `init_fn` takes a session.
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
    `merging_device` is the one whose files come last.
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
