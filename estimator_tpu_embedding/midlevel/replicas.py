"""Which replicas there are, which one is being traced, and what belongs to it."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..errors import CallError, InputShapeError, Problem
from .strategy import is_tpu_strategy


_initialized: weakref.ref[Any] | None = None


def forget_initialized() -> None:
    """Lets the next object under a TPUStrategy be the only one; the system was initialized."""
    _set_initialized(None)


def _set_initialized(owner: weakref.ref[Any] | None) -> None:
    global _initialized
    _initialized = owner


class Replicas:
    """The replicas of one strategy.

    Attributes:
      number: how many.
      num_hosts: emulated hosts; 1 under other strategies than a TPUStrategy.
      are_tpu: whether they are those of an emulated TPU.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        """Of the strategy under which an object is created."""
        self._strategy = strategy
        self.number: int = strategy.num_replicas_in_sync
        self.are_tpu = is_tpu_strategy(strategy)
        self.num_hosts: int = strategy.extended.num_hosts if self.are_tpu else 1

    def initialize(self, owner: Any, *, joins: bool) -> None:
        """Makes an object the one that has the engine of an emulated TPU, as long as it exists.

        Args:
          owner: the object.
          joins: whether it shares that of another instead, as 2.3 allows.

        Raises:
          CallError: if there is another, or none to join.
        """
        if not self.are_tpu:
            return
        other = _initialized() if _initialized is not None else None
        if joins and other is None:
            raise CallError(Problem(
                'E559', 'TPUEmbedding', 'initialize_tpu_embedding=False needs another object that '
                'has initialized the engine', 'none'))
        if not joins and other is not None:
            raise CallError(Problem(
                'E559', 'TPUEmbedding', 'TPU is already initialized for embeddings. This may be '
                'caused by using multiple TPUEmbedding instances in a TPU scope which is '
                'unsupported', remedy='Call tf.tpu.experimental.initialize_tpu_system() before '
                'the next one, or delete the one before.'))
        if not joins:
            _set_initialized(weakref.ref(owner))

    def fed(self, device: str | None) -> list[int]:
        """The replicas for which `enqueue` is called here."""
        if device is not None:
            found = re.search(r'TPU:(\d+)$', device)
            if not found or int(found[1]) >= self.number:
                raise InputShapeError(Problem(
                    'E545', 'enqueue', f'Non-TPU device {device} passed to enqueue',
                    remedy=f'Pass "/TPU:k" with k below {self.number}, or no device.'))
            return [int(found[1])]
        context = self._context()
        return list(range(self.number)) if context is None else [_number(context)]

    def own(self, method: str) -> int:
        """The replica in which `method` is called."""
        context = self._context()
        if context is not None:
            return _number(context)
        if self.number > 1:
            raise CallError(Problem(
                'E550', method, f'it must be called in the function that strategy.run calls, of '
                f'the strategy under which the object was created, which has {self.number} '
                'replicas', f'a call under {type(tf.distribute.get_strategy()).__name__}'
                if tf.distribute.get_replica_context() is not None else 'a call outside of it'))
        return 0

    def value(self, value: Any, replica: int) -> Any:
        """What of a value belongs to one replica; all of it, if it is not one of replicas."""
        if self._context() is not None or self.number == 1 and tf.is_tensor(value):
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

    def _context(self) -> Any:
        """The replica that is being traced, `None` outside of `strategy.run`."""
        context = tf.distribute.get_replica_context()
        return context if context is not None and context.strategy is self._strategy and (
            tf.distribute.has_strategy()) else None


def _number(context: Any) -> int:
    return int(tf.get_static_value(context.replica_id_in_sync_group))
