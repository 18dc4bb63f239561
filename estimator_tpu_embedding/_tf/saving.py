"""Savers, and the hooks that save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def add_listeners(saver_hook: Any, listeners: Any) -> None:
    """Adds saving listeners to a `CheckpointSaverHook` that exists; its constructor alone is
    public for that. Checked: 2.16-2.21.
    """
    saver_hook._listeners.extend(
        listener for listener in listeners if listener not in saver_hook._listeners)


def saving_listeners(saver_hook: Any) -> list[Any]:
    """The listeners of a `CheckpointSaverHook`. Checked: 2.16-2.21."""
    return list(saver_hook._listeners)


def replace_saver(saver_hook: Any, wrap: Callable[[Any], Any]) -> Any:
    """Lets a `CheckpointSaverHook` that exists save with another saver, which is returned.

    Args:
      saver_hook: that of a user, who may use it again for another graph.
      wrap: makes the other one from the saver of the hook, of which nothing may be used before
        there is a session: until then nobody knows which one it is. Checked: 2.16-2.21.
    """
    class Chosen:
        def __getattr__(self, name: str) -> Any:
            return getattr(type(saver_hook)._get_saver(saver_hook), name)

    wrapped = wrap(Chosen())
    saver_hook._get_saver = lambda: wrapped
    return wrapped


def arrange_scaffold(scaffold: Any, saver: Any = None, init_fn: Any = None) -> None:
    """Gives a `tf.train.Scaffold` that exists another saver, or what is called with a session.

    Only its constructor is public for that, and a derived class may have properties of its own,
    which give way. Checked: 2.16-2.21.
    """
    given = {name: value for name, value in (('saver', saver), ('init_fn', init_fn))
             if value is not None}
    for name, value in given.items():
        setattr(scaffold, f'_{name}', value)
    if init_fn is not None:  # What a copy takes.
        scaffold._user_init_fn = lambda _, session: init_fn(session)
    from tensorflow.python.training import monitored_session
    base, cls = monitored_session.Scaffold, type(scaffold)
    own = {name: getattr(base, name) for name in given
           if getattr(cls, name) is not getattr(base, name)}
    if own:
        scaffold.__class__ = type(cls.__name__, (cls,), {'__module__': cls.__module__, **own})


def saver_builder() -> Any:
    """The class whose instances build the operations of a `tf.train.Saver`, by default.

    `tf.train.Saver(builder=...)` is public, what to derive a builder from is not. The builder
    has the class `ResourceVariableSaveable`, whose `handle_op` is the handle of the variable, and
    `shards`, which a derived class may override: of all that is on one device, the lists that
    become one file each. Checked: 2.16-2.21.
    """
    from tensorflow.python.training import saver

    class Builder(saver.BulkSaverBuilder):
        def shards(self, saveables: list[Any]) -> list[list[Any]]:
            """One file for all, as TensorFlow has it."""
            return [saveables]

        def _GroupByDevices(self, saveables: list[Any]) -> list[tuple[str, list[Any]]]:
            return [(device, shard) for device, group in super()._GroupByDevices(saveables)
                    for shard in self.shards(group)]

    return Builder
