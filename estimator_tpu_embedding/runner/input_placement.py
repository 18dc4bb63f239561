"""Builds the input of a host on its worker, and refuses what cannot be there.

A worker executes operations of TensorFlow and has no Python of the job. A resource, such as a
lookup table or an iterator, is used on the device that holds it: only tensors travel.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.deployment import Invocation
from ..errors import ConfigError, Problem
from ..hosts.operations import python_in
from ..hosts.placement import Placement, on
from .input import DATASETS

_REMEDY = 'Leave input_on_workers off: the client then has the input, with all of its Python.'


@contextlib.contextmanager
def built_on_host(placement: Placement, invocation: Invocation) -> Iterator[None]:
    """Places the operations of the body where a call of input_fn builds.

    Raises:
      ConfigError: E736, E737 if that is a worker, and some of them cannot be there.
    """
    device = placement.input(invocation.host)
    graph = tf.get_default_graph()
    before = len(graph.get_operations())
    with on(device):
        yield
    if device != placement.client:
        made = graph.get_operations()[before:]
        if problems := [*_of_python(made, invocation), *_of_resources(made, invocation)]:
            raise ConfigError(*problems)


def without_tuner(source: Any) -> Any:
    """Returns the value of an input_fn; if it is a dataset, no thread of TensorFlow tunes it.

    A session over tasks closes only when its iterators have ended. The thread that tunes one sleeps
    up to a minute between two looks. It is woken before it is told to end, so on busy cores it
    sleeps again, and the end of the session waits for it.
    """
    if not isinstance(source, DATASETS):
        return source
    with warnings.catch_warnings():  # In a graph, `options` warns that it sees only Python's.
        warnings.simplefilter('ignore', UserWarning)
        asked = source.options().autotune
    if asked != tf.data.experimental.AutotuneOptions():
        return source
    options = tf.data.Options()
    options.autotune.enabled = False
    return source.with_options(options)


def _of_python(operations: Sequence[tf.Operation], invocation: Invocation
               ) -> Iterator[Problem]:
    """Yields a problem for each operation that calls Python, itself or by its functions."""
    for operation in operations:
        kind = python_in(operation)
        if kind is not None:
            within = '' if kind == operation.type else f', in a function of {operation.type}'
            yield Problem(
                'E736', f'input_fn of {invocation.name}', 'with input_on_workers all of it must '
                'be operations of TensorFlow, since a worker has no Python of the job',
                f'{kind}{within} "{operation.name}"', _REMEDY)


def _of_resources(operations: Sequence[tf.Operation], invocation: Invocation
                  ) -> Iterator[Problem]:
    """Yields a problem for each resource of another device."""
    told = set()
    for operation in operations:
        for tensor in operation.inputs:
            maker = tensor.op
            if (tensor.dtype in (tf.resource, tf.variant) and maker not in told
                    and maker.device != operation.device):
                told.add(maker)
                yield Problem(
                    'E737', f'input_fn of {invocation.name}', 'with input_on_workers it must '
                    'make the tables, variables and datasets that it uses, since they stay where '
                    'they are made', f'{maker.type} "{maker.name}" for {operation.type} '
                    f'"{operation.name}"', f'Make it within each call of input_fn. {_REMEDY}')
