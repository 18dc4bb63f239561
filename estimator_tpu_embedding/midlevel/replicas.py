"""The replicas of a strategy, and where in them the calls of a look-up may be made."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from .. import _process, _tf
from ..errors import CallError, InputShapeError, NotInFunctionError, Problem, UnsupportedError
from .strategy import is_tpu_strategy

_initialized: weakref.ref[Any] | None = None


def forget_initialized() -> None:
    """Forgets the object that has the emulated TPU, because the system was initialized anew."""
    global _initialized
    _initialized = None


class Replicas:
    """The replicas of one strategy, under which an object is created.

    Attributes:
      strategy: the strategy, `None` for TensorFlow's default one.
      num_hosts: emulated hosts; 1 under other strategies than a TPUStrategy.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy
        self.strategy = strategy if tf.distribute.has_strategy() else None
        self.number: int = strategy.num_replicas_in_sync
        self.are_tpu = is_tpu_strategy(strategy)
        self.num_hosts: int = strategy.extended.num_hosts if self.are_tpu else 1

    def initialize(self, embedding: Any, *, joins: bool) -> None:
        """Reserves the engine of an emulated TPU for an object, as long as that exists.

        The object may ask again. Another one is a CallError. One that `joins`, to share the
        engine of another object as 2.3 allows, is an UnsupportedError.
        """
        if not self.are_tpu:
            return
        if joins:
            raise UnsupportedError(Problem(
                'E559', 'TPUEmbedding', 'every object has tables of its own: none can share those '
                'of another by initialize_tpu_embedding=False',
                remedy='Use the first object for evaluation too, with training=False.'))
        global _initialized
        other = _initialized() if _initialized is not None else None
        if other is not None and other is not embedding:
            raise CallError(Problem(
                'E559', 'TPUEmbedding', 'TPU is already initialized for embeddings. This may be '
                'caused by using multiple TPUEmbedding instances in a TPU scope which is '
                'unsupported', remedy='Call tf.tpu.experimental.initialize_tpu_system() before '
                'the next one.'))
        _initialized = weakref.ref(embedding)

    def fed(self, device: str | None) -> list[int]:
        """Returns the replicas for which `enqueue` is called here."""
        if device is not None:
            return [self._of_device(device)]
        context = self._context('enqueue')
        return list(range(self.number)) if context is None else [_number(context)]

    def check_inputs(self, paths: Sequence[str], flat: Sequence[Any]) -> None:
        """Refuses ids that a TPU could not take at this place; see `Extended.check_inputs`."""
        context = self._context('enqueue')
        if self.are_tpu and context is not None:
            self._strategy.extended.check_inputs(context, paths, flat)

    def own(self, method: str) -> int | None:
        """Returns the replica in which `method` is called, `None` outside of all of several."""
        context = self._context(method)
        if context is not None:
            return _number(context)
        return None if self.number > 1 else 0

    def value(self, value: Any, replica: int) -> Any:
        """Returns one replica's part of a value, or all of it if it has no parts."""
        if self._context('enqueue') is not None or self.number == 1 and tf.is_tensor(value):
            return value
        values = self._strategy.experimental_local_results(value)
        return values[replica] if len(values) == self.number else values[0]

    def together(self, tensors: Sequence[tf.Tensor],
                 function: Callable[[list[list[tf.Tensor]]], None]) -> None:
        """Calls `function` once with the tensors of every replica, by replica."""
        if self.number == 1:
            function([list(tensors)])
            return
        context = tf.distribute.get_replica_context()

        def merged(strategy: tf.distribute.Strategy, *by_tensor: Any) -> None:
            local = [strategy.experimental_local_results(one) for one in by_tensor]
            function([list(of_replica) for of_replica in zip(*local)])

        try:
            context.merge_call(merged, args=tuple(tensors))
        except RuntimeError as error:
            if 'merge_call' not in str(error):
                raise
            raise CallError(Problem(
                'E549', 'apply_gradients', 'where there are replicas it must not be in a loop, a '
                'condition or a tf.function within the function that strategy.run calls',
                remedy='Put the loop around strategy.run.')) from error

    def _context(self, method: str) -> Any:
        """Returns the context of the traced replica, `None` outside of `strategy.run`.

        Raises:
          CallError: in one of several replicas of another strategy.
        """
        context = tf.distribute.get_replica_context()
        if context is None or not tf.distribute.has_strategy():
            return None
        if context.strategy is self._strategy:
            return context
        if context.num_replicas_in_sync > 1:
            raise CallError(Problem(
                'E550', method, self._where,
                f'a call under {type(tf.distribute.get_strategy()).__name__}',
                'Create the object in strategy.scope().'))
        return None

    @property
    def _where(self) -> str:
        return ('it must be called in the function that strategy.run calls, of the strategy under '
                f'which the object was created, which has {self.number} replica(s)')

    def outside(self, method: str) -> Problem:
        """The problem of a call outside of `strategy.run`."""
        return Problem('E550', method, self._where, 'a call outside of it',
                       'Call it, and the Keras model that calls it, in strategy.run.')

    def _of_device(self, device: str) -> int:
        """Returns the replica of a device: one of the strategy's, or the emulated TPU's."""
        own = self.strategy.extended.worker_devices if self.strategy is not None else ()
        if device in own:
            return own.index(device)
        found = re.search(r'TPU:(\d+)$', device)
        if not found or int(found[1]) >= self.number:
            raise InputShapeError(Problem(
                'E545', 'enqueue', f'Non-TPU device {device} passed to enqueue',
                remedy='Pass strategy.extended.worker_devices[k] or "/TPU:k" with k below '
                f'{self.number}, or no device.'))
        return int(found[1])


def _number(context: Any) -> int:
    return int(tf.get_static_value(context.replica_id_in_sync_group))


def require_function(method: str) -> None:
    """Requires that a function is being traced, which is to be executed in this process.

    Raises:
      NotInFunctionError: in eager mode.
      CallError: a RuntimeError, in a function that XLA compiles.
    """
    _process.require_threads(method)
    if not tf.inside_function():
        raise NotInFunctionError(Problem(
            'E551', method, 'it must be called while a tf.function is traced', 'an eager call',
            'Put the step into a tf.function, and leave tf.config.run_functions_eagerly off.'))
    if _tf.is_compiled_by_xla(tf.compat.v1.get_default_graph()):
        raise CallError(Problem(
            'E542', method, 'XLA cannot compile the queues and tables of the host',
            'a function with jit_compile=True', 'Leave jit_compile out of tf.function, and out of '
            'compile of a Keras model; a TPU compiles what surrounds the look-ups by itself.'))


def unbuilt(method: str) -> CallError:
    """Returns the error of a call before the shapes of features are known."""
    return CallError(Problem(
        'E553', method, f'{method} called on unbuilt TPUEmbedding object. Please either call '
        'enqueue first or manually call the build method', remedy='Where build() is called, it '
        'needs the shapes of the inputs too.'))


def is_rehearsal() -> bool:
    """Whether Keras calls a layer only to learn the shapes of its outputs.

    It does so for functional models, with placeholders of the shapes of its `Input`s, in a graph
    of this name that is never executed.
    """
    name = getattr(tf.compat.v1.get_default_graph(), 'name', None)
    return isinstance(name, str) and name.endswith('_scratch_graph')


def is_outside_of_replicas() -> bool:
    """Whether this code runs once for all replicas, and not within `strategy.run`."""
    return not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context()
