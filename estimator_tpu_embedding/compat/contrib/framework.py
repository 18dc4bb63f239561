"""`tf.contrib.framework`: variables by name and scope, values from checkpoints, arg_scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from ... import _tf
from . import arg_scope, same

Assign = Callable[[Any], None]


@arg_scope.add_arg_scope
def variable(name: str, shape: Any = None, dtype: Any = tf.float32, initializer: Any = None,
             regularizer: Any = None, trainable: bool = True,
             collections: Sequence[str] | None = None, device: Any = '',
             use_resource: bool | None = None) -> Any:
    """Makes a variable on a device. Collections are `GLOBAL_VARIABLES` if `None`."""
    with tf.device(device or None):
        return tf.get_variable(
            name, shape, dtype, initializer, regularizer, trainable,
            collections=collections or [tf.GraphKeys.GLOBAL_VARIABLES],
            use_resource=use_resource)


@arg_scope.add_arg_scope
def model_variable(name: str, shape: Any = None, dtype: Any = tf.float32, initializer: Any = None,
                   regularizer: Any = None, trainable: bool = True,
                   collections: Sequence[str] | None = None, device: Any = '',
                   use_resource: bool | None = None) -> Any:
    """Makes a `variable` that is in `MODEL_VARIABLES`, too."""
    kept = [*(collections or ()), tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES]
    return variable(name, shape, dtype, initializer, regularizer, trainable,
                    list(dict.fromkeys(kept)), device, use_resource)


def get_variables(scope: Any = None, suffix: str | None = None,
                  collection: str = tf.GraphKeys.GLOBAL_VARIABLES) -> list[Any]:
    """Returns the variables of a collection in a scope, or with a suffix.

    Args:
      scope: a regular expression for the beginning of names, or a variable scope.
      suffix: the end of their names.
      collection: collection to search.
    """
    if isinstance(scope, tf.VariableScope):
        scope = scope.name
    if suffix is not None:
        scope = f'{scope or ""}.*{suffix}{"" if ":" in suffix else ":"}'
    found: list[Any] = tf.get_collection(collection, scope)
    return found


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """Returns `get_variables` of `MODEL_VARIABLES`."""
    return get_variables(scope, suffix, tf.GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """Returns `get_variables` of `LOCAL_VARIABLES`."""
    return get_variables(scope, suffix, tf.GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """Returns `get_variables` of `TRAINABLE_VARIABLES`."""
    return get_variables(scope, suffix, tf.GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """Returns the variables whose names end in a suffix."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """Returns the variables with that name, in any scope below `scope`."""
    suffix = f'/{given_name}:|^{given_name}:'
    return get_variables(scope, suffix)


def get_unique_variable(var_op_name: str) -> Any:
    """Returns the only variable with that full name.

    Raises:
      ValueError: if there is none.
    """
    for one in get_variables(scope=re.escape(var_op_name)):
        if one.op.name == var_op_name:
            return one
    raise ValueError(f'Variable {var_op_name} does not uniquely identify a variable')


def get_variables_to_restore(include: Collection[str] | None = None,
                             exclude: Collection[str] | None = None) -> list[Any]:
    """Returns the global variables in the scopes `include`, but not in `exclude`.

    If `include` is `None`, it means all scopes.
    """
    chosen = get_variables() if include is None else [
        one for scope in include for one in get_variables(scope)]
    left_out = {one.ref() for scope in exclude or () for one in get_variables(scope)}
    return [one for one in chosen if one.ref() not in left_out]


def filter_variables(var_list: Sequence[Any], include_patterns: Collection[str] | None = None,
                     exclude_patterns: Collection[str] | None = None, reg_search: bool = True
                     ) -> list[Any]:
    """Returns variables whose names match an include pattern and no exclude pattern.

    Patterns match anywhere in a name; with `reg_search=False` they match at its beginning.
    """
    matches = re.search if reg_search else re.match
    return [one for one in var_list
            if (include_patterns is None or any(matches(each, one.op.name)
                                                for each in include_patterns))
            and not any(matches(each, one.op.name) for each in exclude_patterns or ())]


def get_variable_full_name(var: Any) -> str:
    """Returns the name of a variable in a checkpoint."""
    return _tf.full_name_and_shape(var)[0]


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Assign:
    """Returns a function of a session that assigns values to variables by full name."""
    return _assign([(get_unique_variable(name), np.asarray(value))
                    for name, value in var_names_to_values.items()])


def assign_from_checkpoint_fn(model_path: str, var_list: Any, ignore_missing_vars: bool = False,
                              reshape_variables: bool = False) -> Assign | None:
    """Returns a function of a session that assigns the values of a checkpoint to variables.

    Args:
      model_path: path of the checkpoint, or of its directory.
      var_list: variables, or a dict from names in the checkpoint to variables.
      ignore_missing_vars: whether variables that the checkpoint lacks are left alone.
      reshape_variables: whether a value may have another shape of the same size.

    Returns:
      The function; `None` if it has nothing to do.

    Raises:
      ValueError: for a variable that is missing, or one of another shape.
    """
    by_name = dict(var_list) if isinstance(var_list, Mapping) else {
        get_variable_full_name(one): one for one in var_list}
    reader = tf.train.load_checkpoint(model_path)
    missing = [name for name in by_name if not reader.has_tensor(name)]
    if missing and not ignore_missing_vars:
        raise ValueError(f'The checkpoint {model_path} lacks {", ".join(missing)}')
    values = []
    for name in by_name.keys() - set(missing):
        value, shape = reader.get_tensor(name), by_name[name].shape.as_list()
        if list(value.shape) != shape and not (
                reshape_variables and value.size == np.prod(shape)):
            raise ValueError(f'{name} has the shape {shape}, and {list(value.shape)} in the '
                             f'checkpoint {model_path}')
        values.append((by_name[name], value.reshape(shape)))
    return _assign(values) if values else None


def _assign(values: Sequence[tuple[Any, np.ndarray[Any, Any]]]) -> Assign:
    """Makes operations now, because the graph may be final when a session exists."""
    feeds = [tf.placeholder(one.dtype.base_dtype, value.shape) for one, value in values]
    operation = tf.group(*[one.assign(feed) for (one, _), feed in zip(values, feeds)])

    def assign(session: Any) -> None:
        session.run(operation, {feed: value for (_, value), feed in zip(values, feeds)})
    return assign


def smart_cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any],
               name: str | None = None) -> Any:
    """Returns `tf.cond`, or calls one function if the condition is known already."""
    known = pred if isinstance(pred, (bool, int)) else tf.get_static_value(pred)
    if known is None:
        return tf.cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


NAMES: dict[str, Any] = {one.__name__: one for one in (
    arg_scope.add_arg_scope, arg_scope.arg_scope, arg_scope.arg_scoped_arguments,
    arg_scope.current_arg_scope, arg_scope.has_arg_scope, assign_from_checkpoint_fn,
    assign_from_values_fn, filter_variables, get_local_variables, get_model_variables,
    get_trainable_variables, get_unique_variable, get_variable_full_name, get_variables,
    get_variables_by_name, get_variables_by_suffix, get_variables_to_restore, model_variable,
    smart_cond, variable)}
NAMES |= same.names_of('framework')
NAMES['nest'] = _tf.modules_of_contrib()['nest']
