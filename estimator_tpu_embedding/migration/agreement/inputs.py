"""Sees the input of a side beside its ids: labels, and numbers that go into the model as they are.

A value is known by the last key on its way through dicts, such as `'age'`. Otherwise it is `LABELS`
if it is in the second part of a pair.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

LABELS = 'labels'
Tell = Callable[[int, int, Mapping[str, np.ndarray]], None]
"""Takes the number of an input pipeline, of its element, and values `[samples, ...]` by name."""


def named(element: Any) -> dict[str, Any]:
    """Returns the values of an element by their names; of two with one name, the first.

    >>> named(({'age': 30, 'more': {'place': 2}}, 0))
    {'age': 30, 'place': 2, 'labels': 0}
    """
    is_pair = isinstance(element, (tuple, list)) and len(element) == 2
    found: dict[str, Any] = {}
    for part, name in zip(element, ('', LABELS)) if is_pair else [(element, '')]:
        for own_name, value in _named(part, name):
            if own_name:
                found.setdefault(own_name, value)
    return found


def _named(element: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(element, Mapping):
        for key, value in element.items():
            yield from _named(value, key if isinstance(key, str) else name)
    elif isinstance(element, (tuple, list)):
        for value in element:
            yield from _named(value, name)
    else:
        yield name, element


def seen_in_input_fn(input_fn: Callable[..., Any], tell: Tell) -> Callable[..., Any]:
    """Returns an `input_fn` whose datasets tell their elements; other results stay unseen."""
    calls = itertools.count()

    @functools.wraps(input_fn)
    def seen(*args: Any, **kwargs: Any) -> Any:
        return seen_in_dataset(input_fn(*args, **kwargs), next(calls), tell)

    vars(seen)['__signature__'] = inspect.signature(input_fn)  # The Estimator looks at it.
    return seen


def seen_in_dataset(dataset: Any, pipeline: int, tell: Tell) -> Any:
    """Returns a dataset that tells its elements; anything else as it is."""
    import tensorflow as tf
    if not isinstance(dataset, tf.data.Dataset):
        return dataset
    plain = {name: value for name, value in named(dataset.element_spec).items()
             if isinstance(value, tf.TensorSpec) and _is_number(value.dtype)}

    def told(number: np.ndarray, *values: np.ndarray) -> np.ndarray:
        tell(pipeline, int(number), dict(zip(plain, values)))
        return number

    def see(number: Any, *parts: Any) -> Any:
        element = parts if len(parts) > 1 else parts[0]
        values = named(element)
        done = tf.numpy_function(told, [number, *[values[name] for name in plain]], tf.int64)
        with tf.control_dependencies([done]):
            return tf.nest.map_structure(tf.identity, element, expand_composites=True)

    return dataset.enumerate().map(
        lambda number, element: see(number, *(element if isinstance(element, tuple)
                                              else (element,))))


def seen_in_batches(batches: Iterable[Any], tell: Tell) -> Iterator[Any]:
    """Yields batches, perhaps those of a distributed dataset, and tells what each replica gets."""
    for number, batch in enumerate(batches):
        values = {name: _of_replicas(value) for name, value in named(batch).items()}
        replicas = max(map(len, values.values()), default=0)
        for replica in range(replicas):
            tell(0, number * replicas + replica, {
                name: np.asarray(of_all[replica]) for name, of_all in values.items()
                if len(of_all) == replicas and _is_plain(of_all[replica])})
        yield batch


def _of_replicas(value: Any) -> tuple[Any, ...]:
    """Returns the values of all replicas; of a `PerReplica` they are a tuple."""
    values = getattr(value, 'values', None)
    return values if isinstance(values, tuple) else (value,)


def _is_plain(value: Any) -> bool:
    """Whether a value is an array or tensor of numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in 'biuf' or (
        hasattr(value, 'numpy') and hasattr(value, 'dtype') and _is_number(value.dtype))


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_integer or dtype.is_floating or dtype.is_bool)
