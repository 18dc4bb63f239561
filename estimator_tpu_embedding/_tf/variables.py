"""Variables: their classes, creators, names and first values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def resource_variable() -> Any:
    """The class of variables with a handle, whose instances may answer reads in their own way.

    `tf.Variable` makes such an instance, but nobody can derive from what it makes. A derived class
    may override `_read_variable_op(no_copy=False)`, through which all dense reads go, `sparse_read`
    and `gather_nd`, and may set `_graph_element`, which `Session.run` fetches for a variable; of
    that the saver takes the first input for the handle. `to_proto` writes the name of
    `_cached_value` if there is one. Who imports that has it as the cached value, and what is found
    through the first inputs, up to a `ReadVariableOp`, as the graph element. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import resource_variable_ops
    return resource_variable_ops.ResourceVariable


def last_creator_scope(creator: Callable[..., Any]) -> Any:
    """The context in which a creator of variables is called after all others.

    Those of `tf.variable_creator_scope` are called from the inside to the outside, so that one
    which makes variables itself, entered last, hides all that a user has. `creator` takes what
    `tf.variable_creator_scope` describes. Checked: 2.16-2.21.
    """
    from tensorflow.python.framework import ops
    return ops.get_default_graph()._variable_creator_scope(creator, priority=0)


def full_name_and_shape(variable: Any) -> tuple[str, list[int | None] | None]:
    """The name and shape that a checkpoint holds a variable under.

    For a part of a partitioned variable these are the whole one's; the shape is `None` where
    the rank is unknown. Checked: 2.16-2.21.
    """
    whole = variable._get_save_slice_info()
    if whole is not None:
        return whole.full_name, list(whole.full_shape)
    rank = variable.shape.rank
    return variable.op.name, None if rank is None else variable.shape.as_list()


def auto_trackable() -> type:
    """The base class of objects whose attributes are saved by `tf.train.Checkpoint`.

    Public only below `tf.__internal__`. Checked: 2.16-2.21.
    """
    from tensorflow.python.trackable import autotrackable
    return autotrackable.AutoTrackable


def add_variable(owner: Any, name: str, shape: tuple[int, ...], initializer: Callable[[], Any],
                 create: Callable[..., Any]) -> Any:
    """Lets `create` make a variable that is tracked as the child `name` of a trackable.

    If `owner` was restored before, `initializer` is replaced by what gives the value restored.
    The public way, to assign an attribute, runs the initializer nevertheless, and cannot make
    children whose names hold a slash. Checked: 2.16-2.21.
    """
    return owner._add_variable_with_custom_getter(
        name=name, shape=shape, initializer=initializer, getter=create)


def random_initializers() -> tuple[type, ...]:
    """The classes of initializers whose values are random, one of which TableConfigs have.

    The public names are those of Keras. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import init_ops_v2
    return (init_ops_v2.RandomNormal, init_ops_v2.RandomUniform, init_ops_v2.TruncatedNormal,
            init_ops_v2.VarianceScaling)
