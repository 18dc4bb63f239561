"""Sessions, what they call, and their surroundings: eager mode, seeds, warnings."""

from __future__ import annotations

import contextlib
import re
import threading
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

    TensorFlow's own modules use the public classes, which are derived from it, by other names.
    """
    from tensorflow.python.client import session
    return session.BaseSession


def mark_unopened(session: Any) -> None:
    """Lets a session whose `__init__` was not reached end without a message.

    Its `__del__` asks for a handle that only `__init__` sets.
    """
    session._session = None


@contextlib.contextmanager
def before_sessions(call: Callable[[str, Any], None]) -> Iterator[None]:
    """Calls `call` with address and graph of each session that this thread opens, before it does.

    The session is not opened if `call` raises.
    """
    cls, thread = session_class(), threading.get_ident()
    original = cls.__init__

    def start(self: Any, target: str = '', graph: Any = None, config: Any = None) -> None:
        import tensorflow.compat.v1 as tf
        if threading.get_ident() == thread:
            try:
                call(target, tf.get_default_graph() if graph is None else graph)
            except BaseException:
                mark_unopened(self)
                raise
        original(self, target, graph, config)

    cls.__init__ = start
    try:
        yield
    finally:
        cls.__init__ = original


def eager_mode() -> Any:
    """Returns a context of eager mode, which leaves the graph that this thread builds alone.

    It is for functions that the garbage collector calls; `tf.init_scope` would change the graph.
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


def without_deprecation_warnings() -> Any:
    """Returns a context in which TensorFlow does not warn of deprecated functions.

    This package calls them, and the warnings would advise users to give up what they came for.
    """
    from tensorflow.python.util import deprecation
    return deprecation.silence()


def joined_paths(structure: Any) -> list[tuple[str, Any]]:
    """Returns each leaf of a structure in the order of `tf.nest.flatten`, after its path: `'a/0'`.

    TensorFlow's own messages have these paths.
    """
    from tensorflow.python.util import nest
    return list(nest.flatten_with_joined_string_paths(structure))


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
