"""The replicas of a strategy: their number, the one that is being traced, and its values."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..errors import CallError, InputShapeError, Problem, UnsupportedError
from .strategy import is_tpu_strategy

_initialized: weakref.ref[Any] | None = None


def forget_initialized() -> None:
    """Forgets the object that has the emulated TPU, because the system was initialized anew."""
    _set_initialized(None)


def _set_initialized(owner: weakref.ref[Any] | None) -> None:
    global _initialized
    _initialized = owner


class Replicas:
    """The replicas of one strategy.

    Attributes:
      number: how many replicas there are.
      strategy: the strategy, `None` for TensorFlow's default one.
      num_hosts: emulated hosts; 1 under other strategies than a TPUStrategy.
      are_tpu: whether the strategy is an emulated TPUStrategy.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        """Describes the replicas of `strategy`, under which an object is created."""
        self._strategy = strategy
        self.strategy = strategy if tf.distribute.has_strategy() else None
        self.number: int = strategy.num_replicas_in_sync
        self.are_tpu = is_tpu_strategy(strategy)
        self.num_hosts: int = strategy.extended.num_hosts if self.are_tpu else 1

    def initialize(self, owner: Any, *, joins: bool) -> None:
        """Reserves the engine of an emulated TPU for an object, as long as the object exists.

        Args:
          owner: the object. It may ask again.
          joins: whether it wants to share the engine of another object, as 2.3 allows.

        Raises:
          CallError: if another object has the engine.
          UnsupportedError: for an object that wants to share.
        """
        if not self.are_tpu:
            return
        if joins:
            raise UnsupportedError(Problem(
                'E559', 'TPUEmbedding', 'every object has tables of its own: none can share those '
                'of another by initialize_tpu_embedding=False',
                remedy='Use the first object for evaluation too, with training=False.'))
        other = _initialized() if _initialized is not None else None
        if other is not None and other is not owner:
            raise CallError(Problem(
                'E559', 'TPUEmbedding', 'TPU is already initialized for embeddings. This may be '
                'caused by using multiple TPUEmbedding instances in a TPU scope which is '
                'unsupported', remedy='Call tf.tpu.experimental.initialize_tpu_system() before '
                'the next one.'))
        _set_initialized(weakref.ref(owner))

    def fed(self, device: str | None) -> list[int]:
        """Returns the replicas for which `enqueue` is called here."""
        if device is not None:
            return [self._of_device(device)]
        context = self._context('enqueue')
        return list(range(self.number)) if context is None else [_number(context)]

    def check_inputs(self, paths: Sequence[str], flat: Sequence[Any]) -> None:
        """Refuses ids that a TPU could not take at this place.

        Args:
          paths: of the features.
          flat: the ids of each.

        Raises:
          InputShapeError: a ValueError, for ids that were computed in the step.
          CallError: a RuntimeError, in a loop, condition or function within the step.
        """
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
