"""Sessions and what runs beside them: callables, eager mode, summaries, warnings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def fast_callable(session: Any, feeds: Sequence[Any], fetches: Sequence[Any],
                  targets: Sequence[Any]) -> Callable[..., list[Any]]:
    """Takes arrays for `feeds`, runs `targets` too, and gives the values of `fetches`.

    It fails as `session.run` does, at a fraction of its cost; the public `make_callable` calls
    `run` where there are feeds. Checked: 2.16-2.21.
    """
    from tensorflow.core.protobuf import config_pb2
    call = session._make_callable_from_options(config_pb2.CallableOptions(
        feed=[one.name for one in feeds], fetch=[one.name for one in fetches],
        target=[one.name for one in targets]))
    return lambda *values: session._do_call(call, *values)


def session_class() -> Any:
    """The class whose `__init__(self, target, graph, config)` starts every session.

    Public classes are derived from it, and TensorFlow's own modules use those by other names.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.client import session
    return session.BaseSession


def eager_mode() -> Any:
    """A context of eager mode within whatever this thread builds, of which it touches nothing.

    For what is called by the collector of garbage, at any place; `tf.init_scope` changes the graph.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.eager import context
    return context.eager_mode()


def global_seed() -> int | None:
    """That of `tf.random.set_seed`, in eager mode; `None` before. Checked: 2.16-2.21."""
    from tensorflow.python.eager import context
    return context.global_seed()


def is_saving_model() -> bool:
    """Whether functions are being traced for `tf.saved_model.save`. Checked: 2.16-2.21."""
    from tensorflow.python.saved_model import save_context
    return bool(save_context.in_save_context())


def summary_writer_initializers() -> list[Any]:
    """The operations that open the writers of V2 summaries in the default graph.

    `tf.compat.v1.summary.initialize` runs them only under a default writer. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import summary_ops_v2
    return list(summary_ops_v2.summary_writer_initializer_op())


def cached_summary_writers() -> list[Any]:
    """The writers that `tf.summary.FileWriterCache.get` gave. Checked: 2.16-2.21."""
    from tensorflow.python.summary.writer import writer_cache
    return list(writer_cache.FileWriterCache._cache.values())


def without_deprecation_warnings() -> Any:
    """A context in which TensorFlow does not warn of what this package itself calls.

    It would advise users to give up what they came for. Checked: 2.16-2.21.
    """
    from tensorflow.python.util import deprecation
    return deprecation.silence()


def joined_paths(structure: Any) -> list[tuple[str, Any]]:
    """The path of each leaf in a nested structure, such as `'a/0'`, and the leaf.

    In the order of `tf.nest.flatten`, with the paths that TensorFlow's own messages have.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.util import nest
    return list(nest.flatten_with_joined_string_paths(structure))
