"""Variables: their classes, creators, checkpoint names and random initializers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def resource_variable() -> Any:
    """Returns the class of variables with a handle, for classes that answer reads themselves.

    The public class is no base for derived ones. A derived class may override `sparse_read`,
    `gather_nd` and `_read_variable_op(no_copy=False)`, which serves all dense reads. It may set
    `_graph_element`, which `Session.run` fetches for a variable. The saver takes the first input
    of that element for the handle. A graph that imports the proto has the `_cached_value`, if
    there was one. Its graph element is found through first inputs, up to a `ReadVariableOp`.
    """
    from tensorflow.python.ops import resource_variable_ops
    return resource_variable_ops.ResourceVariable


def last_creator_scope(creator: Callable[..., Any]) -> Any:
    """Returns the context in which a creator of variables is called after all others.

    Those of `tf.variable_creator_scope` are called from the innermost scope to the outermost. So a
    creator that makes variables itself, if it were entered last, would hide the user's creators.
    """
    from tensorflow.python.framework import ops
    return ops.get_default_graph()._variable_creator_scope(creator, priority=0)


def full_name_and_shape(variable: Any) -> tuple[str, list[int | None] | None]:
    """Returns the name and shape of a variable in a checkpoint.

    For a part of a partitioned variable, both belong to the whole variable. The shape is `None`
    if the rank is unknown.
    """
    whole = variable._get_save_slice_info()
    if whole is not None:
        return whole.full_name, list(whole.full_shape)
    rank = variable.shape.rank
    return variable.op.name, None if rank is None else variable.shape.as_list()


def auto_trackable() -> type:
    """Returns the base class of objects whose attributes `tf.train.Checkpoint` saves.

    It is public only below `tf.__internal__`.
    """
    from tensorflow.python.trackable import autotrackable
    return autotrackable.AutoTrackable


def add_variable(trackable: Any, name: str, shape: tuple[int, ...],
                 initializer: Callable[[], Any], create: Callable[..., Any]) -> Any:
    """Makes a variable with `create`, and tracks it as the child `name` of a trackable.

    If `trackable` was restored before, the variable gets the restored value, and `initializer` does
    not run. An assigned attribute would run it, and its name cannot hold a slash.
    """
    return trackable._add_variable_with_custom_getter(
        name=name, shape=shape, initializer=initializer, getter=create)


def random_initializers() -> tuple[type, ...]:
    """Returns the classes of random initializers; a TableConfig has one of them by default.

    The public names lead to the classes of Keras.
    """
    from tensorflow.python.ops import init_ops_v2
    return (init_ops_v2.RandomNormal, init_ops_v2.RandomUniform, init_ops_v2.TruncatedNormal,
            init_ops_v2.VarianceScaling)


def without_tracking_wrapper(value: Any) -> Any:
    """Returns what a value holds that tells trackable objects not to track it, or the value.

    Functions of a user that make slots return such values. The wrapper has no public name.
    """
    from tensorflow.python.trackable import data_structures
    return value.value if isinstance(value, data_structures.NoDependency) else value
