"""Sessions and their surroundings: callables, eager mode, seeds, summaries, warnings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def fast_callable(session: Any, feeds: Sequence[Any], fetches: Sequence[Any],
                  targets: Sequence[Any]) -> Callable[..., list[Any]]:
    """Returns a function of arrays for `feeds` that runs `targets` and returns `fetches`.

    A call fails as `session.run` does, at a fraction of its cost. The public `make_callable` is
    as slow as `run` if there are feeds. Checked: 2.16-2.21.
    """
    from tensorflow.core.protobuf import config_pb2
    call = session._make_callable_from_options(config_pb2.CallableOptions(
        feed=[one.name for one in feeds], fetch=[one.name for one in fetches],
        target=[one.name for one in targets]))
    return lambda *values: session._do_call(call, *values)


def session_class() -> Any:
    """Returns the class whose `__init__(self, target, graph, config)` starts every session.

    The public classes are derived from it, and TensorFlow's own modules use them under other
    names. Checked: 2.16-2.21.
    """
    from tensorflow.python.client import session
    return session.BaseSession


def mark_unopened(session: Any) -> None:
    """Lets a session whose `__init__` was not reached end without a message.

    Its `__del__` asks for a handle that only `__init__` sets. Checked: 2.16-2.21.
    """
    session._session = None


def eager_mode() -> Any:
    """Returns a context of eager mode, which leaves the graph that this thread builds alone.

    It is for functions that the garbage collector calls, at any place. `tf.init_scope` would
    change the graph. Checked: 2.16-2.21.
    """
    from tensorflow.python.eager import context
    return context.eager_mode()


def global_seed() -> int | None:
    """Returns the seed of `tf.random.set_seed` in eager mode, or `None`. Checked: 2.16-2.21."""
    from tensorflow.python.eager import context
    return context.global_seed()


def is_recording_gradients() -> bool:
    """Whether a `tf.GradientTape` records here. Public symbols only stop it. Checked: 2.16-2.21."""
    from tensorflow.python.eager import record
    return bool(record.could_possibly_record())


def is_saving_model() -> bool:
    """Whether functions are being traced for `tf.saved_model.save`. Checked: 2.16-2.21."""
    from tensorflow.python.saved_model import save_context
    return bool(save_context.in_save_context())


def summary_writer_initializers() -> list[Any]:
    """Returns the operations that open the writers of V2 summaries in the default graph.

    `tf.compat.v1.summary.initialize` runs them only under a default writer. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import summary_ops_v2
    return list(summary_ops_v2.summary_writer_initializer_op())


def cached_summary_writers() -> list[Any]:
    """Returns the writers of `tf.summary.FileWriterCache`. Checked: 2.16-2.21."""
    from tensorflow.python.summary.writer import writer_cache
    return list(writer_cache.FileWriterCache._cache.values())


def without_deprecation_warnings() -> Any:
    """Returns a context in which TensorFlow does not warn of deprecated functions.

    This package itself calls them, and the warnings would advise users to give up the features
    that they came for. Checked: 2.16-2.21.
    """
    from tensorflow.python.util import deprecation
    return deprecation.silence()


def joined_paths(structure: Any) -> list[tuple[str, Any]]:
    """Returns the path of each leaf in a nested structure, such as `'a/0'`, and the leaf.

    The order is the same as of `tf.nest.flatten`; TensorFlow's own messages have these paths.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.util import nest
    return list(nest.flatten_with_joined_string_paths(structure))
