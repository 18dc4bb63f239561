"""The emulated `tf.distribute.TPUStrategy`: replicas on logical CPU devices of this process.

TensorFlow has three classes of that name with different arguments, so there are three here too.
`isinstance` with any of the three is true for all of them.

Keras treats every class whose `__name__` begins with `TPUStrategy` as one of a TPU, and these must
be treated so. Each emulated host has an input of its own, as on a TPU. Only for a TPU does Keras
put predictions back into the order of their samples. It also keeps metrics as on a TPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..errors import Problem, UnsupportedError
from .strategy_extended import Extended


def is_tpu_strategy(strategy: Any) -> bool:
    """Returns whether a strategy is an emulated TPUStrategy."""
    return isinstance(strategy, _Emulated)


class _AnyOfThree(type):
    """The metaclass of the three classes: an instance of one is an instance of each."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (
            cls in _NAMES_OF_TENSORFLOW and is_tpu_strategy(instance))


class _Emulated:
    """The common part of the three classes."""

    extended: Any

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (),
            kwargs: dict[str, Any] | None = None, options: Any = None) -> Any:
        """Calls a function on every replica.

        Args:
          fn: a `tf.function`, or any function where one is being traced.
          args: the arguments of each call; a `tf.distribute.DistributedValues` is replaced by the
            replica's part.
          kwargs: like `args`.
          options: a `tf.distribute.RunOptions`, which changes nothing here.

        Returns:
          The results of the calls, as `tf.distribute.DistributedValues`.

        Raises:
          UnsupportedError: if the function would run eagerly; a TPU cannot do that either.
        """
        if tf.executing_eagerly() and not any(isinstance(one, (
                tf.types.experimental.GenericFunction, tf.types.experimental.ConcreteFunction))
                for one in (fn, getattr(fn, '__call__', None))):
            raise UnsupportedError(Problem(
                'E921', 'TPUStrategy.run', 'TPUStrategy.run(fn, ...) does not support pure eager '
                'execution. please make sure the function passed into `strategy.run` is a '
                '`tf.function` or `strategy.run` is called inside a `tf.function` if eager '
                'behavior is enabled'))
        return super().run(fn, args, kwargs, options)  # type: ignore[misc]

    @property
    def cluster_resolver(self) -> Any:
        """The resolver that the strategy was given, otherwise one that finds the same system."""
        if self.extended.resolver is None:
            # By its name in TensorFlow, where install() has put the emulated one.
            self.extended.resolver = tf.distribute.cluster_resolver.TPUClusterResolver('local')
        return self.extended.resolver

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> Any:
        """Returns the tensor, because a replica has one core.

        Raises:
          ValueError: for another core than 0, or if the strategy was told to split by itself.
        """
        if self.extended.is_spmd:
            raise ValueError(
                'Cannot assign a tensor to a logical device in SPMD mode. To disable SPMD, Please '
                'construct the TPUStrategy with `experimental_spmd_xla_partitioning=False`')
        if logical_device_id != 0:
            raise ValueError(
                '`logical_core_id` to assign must be lower then total number of logical devices '
                f'per replica. Received logical device id {logical_device_id} but there are only '
                'total of 1 logical devices in replica.')
        return tensor

    def experimental_split_to_logical_devices(self, tensor: Any,
                                              partition_dimensions: Sequence[int]) -> Any:
        """Returns the tensor, because a replica has one core.

        Args:
          tensor: of known rank.
          partition_dimensions: the number of parts of each dimension; all must be 1.

        Raises:
          ValueError: for other numbers.
        """
        rank = tensor.shape.rank
        if rank != len(partition_dimensions):
            raise ValueError('Length of `partition_dimensions` must equal to the rank of '
                             f'`tensor.shape` ({rank}). Received '
                             f'len(partition_dimensions)={len(partition_dimensions)}.')
        if any(parts != 1 for parts in partition_dimensions):
            raise ValueError('The product of `partition_dimensions` should be the same as the '
                             'number of logical devices (=1). Received `partition_dimensions`='
                             f'{partition_dimensions}.')
        return tensor

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> Any:
        """Returns the tensor, because a replica has one core."""
        return tensor


class TPUStrategyV2(_Emulated, tf.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.distribute.TPUStrategy`."""

    def __init__(self, tpu_cluster_resolver: Any = None,
                 experimental_device_assignment: Any = None,
                 experimental_spmd_xla_partitioning: bool = False):
        """Makes replicas on logical CPU devices.

        Args:
          tpu_cluster_resolver: a `TPUClusterResolver` of this package; each core of its system gets
            a replica. `None` is the system that `install()` was given.
          experimental_device_assignment: a `tf.tpu.experimental.DeviceAssignment` of fewer
            replicas, each on one core.
          experimental_spmd_xla_partitioning: changes nothing for replicas of one core.

        Raises:
          SetupError: if there are too few logical CPU devices, and it is too late for more.
          UnsupportedError: for replicas of several cores.
        """
        # Skips the constructor of MirroredStrategy, which makes its own `extended`.
        super(tf.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, experimental_device_assignment,
            experimental_spmd_xla_partitioning))


class TPUStrategy(_Emulated, tf.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.distribute.experimental.TPUStrategy`."""

    def __init__(self, tpu_cluster_resolver: Any = None, device_assignment: Any = None):
        """Makes replicas as `TPUStrategyV2` does, with the same arguments and errors."""
        super(tf.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, device_assignment))


class TPUStrategyV1(_Emulated, tf.compat.v1.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.compat.v1.distribute.experimental.TPUStrategy`."""

    def __init__(self, tpu_cluster_resolver: Any = None, steps_per_run: int | None = None,
                 device_assignment: Any = None):
        """Makes replicas as `TPUStrategyV2` does; `steps_per_run` changes nothing."""
        super(tf.compat.v1.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, device_assignment, steps_per_run=steps_per_run))

    @property
    def steps_per_run(self) -> int:
        """The number that the strategy was given, or 1."""
        return int(self.extended.steps_per_run)


_NAMES_OF_TENSORFLOW = TPUStrategyV2, TPUStrategy, TPUStrategyV1
