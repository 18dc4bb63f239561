"""What a TPU demands of the ids that a step enqueues, for jobs that go back to hardware.

There, the host hands the ids over before the step begins. So a step can enqueue its own arguments
only. The checks and their words are TensorFlow's. TensorFlow also refuses ids that a dataset has
fetched to a device. Nothing in a graph here tells where ids are.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ..errors import CallError, InputShapeError, Problem


class _Step(NamedTuple):
    graph: tf.Graph
    arguments: frozenset[Any]


class Steps:
    """The calls by `strategy.run` that are being traced, by the context of their replica."""

    def __init__(self) -> None:
        self._by_context: weakref.WeakKeyDictionary[Any, _Step] = weakref.WeakKeyDictionary()

    def noting(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that notes its arguments, and then calls `step`."""
        @tf.autograph.experimental.do_not_convert
        def note_and_call(*args: Any, **kwargs: Any) -> Any:
            self._by_context[tf.distribute.get_replica_context()] = _Step(
                tf.compat.v1.get_default_graph(), frozenset(
                    tensor.ref() for tensor in tf.nest.flatten((args, kwargs), True)
                    if isinstance(tensor, tf.Tensor)))
            return step(*args, **kwargs)
        return note_and_call

    def check(self, context: Any, paths: Sequence[str], flat: Sequence[Any]) -> None:
        """Refuses an `enqueue` that a TPU could not make before the step begins.

        Args:
          context: of the replica.
          paths: of the features.
          flat: the ids of each.

        Raises:
          CallError: a RuntimeError, in a loop, a condition or a function within the step.
          InputShapeError: a ValueError, for ids that are no arguments of the step.
        """
        graph, step = tf.compat.v1.get_default_graph(), self._by_context.get(context)
        if step is not None and graph is not step.graph:
            raise CallError(Problem(
                'E540', 'enqueue', f'Current graph {graph} does not match graph which contains '
                f'TPUReplicateContext {step.graph}. This is most likely due to the fact that '
                'enqueueing embedding data is called inside control flow or a tf.function inside '
                '`strategy.run`. This is not supported because outside compilation fails to '
                'extract the enqueue ops as the head of a computation',
                remedy='Call enqueue in the function that strategy.run calls, or around it.'))
        arguments = frozenset() if step is None else step.arguments
        for path, tensor in _components(paths, flat):
            if tensor.op.type == 'Placeholder' or tensor.ref() in arguments:
                continue
            raise InputShapeError(Problem(
                'E539', 'enqueue', f'Received input tensor {path} which is the output of op '
                f'{tensor.op.name} (type {tensor.op.type}) which does not have the '
                '`_tpu_input_identity` attr. Please ensure that the inputs to this layer are taken '
                'directly from the arguments of the function called by strategy.run', remedy=(
                    'Compute ids in the dataset. With a Keras model, the types of inputs must be '
                    'those of the `tf.keras.Input`s.')))


def _components(paths: Sequence[str], flat: Sequence[Any]) -> list[tuple[str, tf.Tensor]]:
    return [(path, tensor) for path, value in zip(paths, flat)
            for tensor in tf.nest.flatten(value, True)
            if isinstance(tensor, tf.Tensor) and hasattr(tensor, 'graph')]
