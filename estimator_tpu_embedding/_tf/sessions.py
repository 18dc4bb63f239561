"""Sessions, what they call and save, and their surroundings: eager mode, seeds, warnings."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_FROM_TASK = re.compile(r'From (/job:\S+/task:\d+):\n([^\n]+)')
_AT_TASK = re.compile(r'^OOM .* on (/job:\S+/task:\d+)/')
_AFTER_NODE = re.compile(r"Node: '[^\n]*'\n(?!Detected at node|=====)([^\n]+)")


def pass_calls_through(session: Any, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
                       ) -> None:
    """Lets what `wrap` returns stand for the methods by which a session runs anything.

    There are two. `make_callable` uses only the second, and `fast_callable` only the first. Hooks
    of users get the session itself, so that no class around it would see all calls.
    """
    session._do_call = wrap(session._do_call)
    session._call_tf_sessionrun = wrap(session._call_tf_sessionrun)


def ask_nothing(session: Any) -> None:
    """Lets the server of a session refuse a run that asks for nothing.

    The server does that in a thread of its own, so it answers while steps occupy all threads that
    run operations. `session.run` sends nothing if nothing is asked for, and `list_devices` keeps
    Python's lock while it waits.

    Raises:
      tf.errors.InvalidArgumentError: if the server answers.
      tf.errors.AbortedError: if the server does not know the session: it is another process.
      tf.errors.OpError: if nobody answers.
    """
    session._call_tf_sessionrun(None, {}, [], [], None)


def leave_session(session: Any) -> None:
    """Lets nobody close a session, neither a caller nor the garbage collector.

    Closing waits for each process of a cluster, even for one that is gone. The collector calls
    `close`, too. The session is not marked as closed, for a call would then fail by that, and not
    by the loss that `pass_calls_through` may raise.
    """
    session.close = lambda: None


def creator_that_tells(told: Callable[[Any], None], *arguments: Any, **named: Any) -> Any:
    """Returns a `ChiefSessionCreator` that tells of a session before it restores or runs anything.

    The public class makes the session inside of the method that restores.
    """
    import tensorflow.compat.v1 as tf
    creator = tf.train.ChiefSessionCreator(*arguments, **named)
    make_manager = creator._get_session_manager

    def manager_that_tells() -> Any:
        manager = make_manager()
        open_only = type(manager)._restore_checkpoint

        def restore(master: str, saver: Any = None, checkpoint_dir: str | None = None,
                    checkpoint_filename_with_path: str | None = None, config: Any = None,
                    **others: Any) -> tuple[Any, bool]:
            session, _ = open_only(manager, master, config=config)
            told(session)
            if saver is None or not checkpoint_filename_with_path:
                return session, False
            if found := tf.get_collection('saved_model_initializers'):
                session.run(found)
            saver.restore(session, checkpoint_filename_with_path)
            return session, True

        manager._restore_checkpoint = restore
        return manager

    creator._get_session_manager = manager_that_tells
    return creator


def register_function(token: str, function: Callable[..., Any]) -> None:
    """Lets `tf.raw_ops.PyFunc(token=token)` call a function of this process, from any session.

    `tf.numpy_function` chooses the token by itself, so no other process could know it. The
    registry keeps no function alive: the caller must.
    """
    from tensorflow.python.ops import script_ops
    script_ops._py_funcs._funcs[token] = function


def fast_callable(session: Any, feeds: Sequence[Any], fetches: Sequence[Any],
                  targets: Sequence[Any]) -> Callable[..., list[Any]]:
    """Returns a function of arrays for `feeds` that runs `targets` and returns `fetches`.

    A call fails as `session.run` does, at a fraction of its cost. The public `make_callable` is
    as slow as `run` if there are feeds.
    """
    from tensorflow.core.protobuf import config_pb2
    call = session._make_callable_from_options(config_pb2.CallableOptions(
        feed=[one.name for one in feeds], fetch=[one.name for one in fetches],
        target=[one.name for one in targets]))
    return lambda *values: session._do_call(call, *values)


def session_class() -> Any:
    """Returns the class whose `__init__(self, target, graph, config)` starts every session.

    The public classes are derived from it, and TensorFlow's own modules use them under other
    names.
    """
    from tensorflow.python.client import session
    return session.BaseSession


def mark_unopened(session: Any) -> None:
    """Lets a session whose `__init__` was not reached end without a message.

    Its `__del__` asks for a handle that only `__init__` sets.
    """
    session._session = None


@contextlib.contextmanager
def instead_of_sessions(call: Callable[[Any], None]) -> Iterator[None]:
    """Calls `call` with the graph of every session that would be opened; it must raise an error."""
    cls = session_class()
    original = cls.__init__

    def start(self: Any, target: Any = '', graph: Any = None, config: Any = None) -> None:
        import tensorflow.compat.v1 as tf
        mark_unopened(self)
        call(tf.get_default_graph() if graph is None else graph)

    cls.__init__ = start
    try:
        yield
    finally:
        cls.__init__ = original


def eager_mode() -> Any:
    """Returns a context of eager mode, which leaves the graph that this thread builds alone.

    It is for functions that the garbage collector calls, at any place. `tf.init_scope` would
    change the graph.
    """
    from tensorflow.python.eager import context
    return context.eager_mode()


def global_seed() -> int | None:
    """Returns the seed of `tf.random.set_seed` in eager mode, or `None`."""
    from tensorflow.python.eager import context
    return context.global_seed()


def is_recording_gradients() -> bool:
    """Whether a `tf.GradientTape` records here. Public symbols only stop it."""
    from tensorflow.python.eager import record
    return bool(record.could_possibly_record())


def is_saving_model() -> bool:
    """Whether functions are being traced for `tf.saved_model.save`."""
    from tensorflow.python.saved_model import save_context
    return bool(save_context.in_save_context())


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


def without_deprecation_warnings() -> Any:
    """Returns a context in which TensorFlow does not warn of deprecated functions.

    This package itself calls them, and the warnings would advise users to give up the features
    that they came for.
    """
    from tensorflow.python.util import deprecation
    return deprecation.silence()


def joined_paths(structure: Any) -> list[tuple[str, Any]]:
    """Returns the path of each leaf in a nested structure, such as `'a/0'`, and the leaf.

    The order is the same as of `tf.nest.flatten`; TensorFlow's own messages have these paths.
    """
    from tensorflow.python.util import nest
    return list(nest.flatten_with_joined_string_paths(structure))


def add_listeners(saver_hook: Any, listeners: Any) -> None:
    """Adds saving listeners to an existing `CheckpointSaverHook`.

    The public way is its constructor only.
    """
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


def cause_of(error: Any) -> tuple[str, str]:
    """Returns (device, text) of an error of TensorFlow: of the task that raised it, without stacks.

    The device is `''` if it was this process.

    >>> import tensorflow.compat.v1 as tf
    >>> message = "Node: 'save/SaveV2'\\nD/model.ckpt-7; No such file or directory\\n\\t [[...]]"
    >>> cause_of(tf.errors.NotFoundError(None, None, message))
    ('', 'D/model.ckpt-7; No such file or directory')
    """
    device, text = '', error.message
    if (from_task := _FROM_TASK.search(text)) is not None:
        device, text = from_task[1], from_task[2].strip()
    elif (after_node := _AFTER_NODE.search(text)) is not None:
        text = after_node[1].strip()
    if error.op is not None:  # The text may name another task, which waited for the first.
        device = error.op.device
    if (at_task := _AT_TASK.search(text)) is not None:
        device = at_task[1]
    return device, text
