"""The emulated `tf.distribute.TPUStrategy`: replicas on logical CPU devices of this process.

TensorFlow has three classes of that name, with arguments of their own, and so there are three
here, under the names that TensorFlow's have: Keras takes every class whose `__name__` begins with
`TPUStrategy` for one of a TPU. It must, since each emulated host has an input of its own, as on a
TPU, and only for these does Keras put predictions back into the order of their samples; it also
keeps metrics as it does on a TPU. `isinstance` with any of the three is true for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..errors import Problem, UnsupportedError
from .system import Extended


def is_tpu_strategy(strategy: Any) -> bool:
    """Whether a strategy is an emulated TPUStrategy."""
    return isinstance(strategy, _Emulated)


class _AnyOfThree(type):
    """The class of the three classes: what is an instance of one is one of each."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (
            vars(cls).get('_is_name_of_tensorflow', False) and is_tpu_strategy(instance))


class _Emulated:
    """What the three have in common."""

    extended: Any

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (),
            kwargs: dict[str, Any] | None = None, options: Any = None) -> Any:
        """Calls a function on every replica.

        Args:
          fn: a `tf.function`, or any function where one is being traced.
          args: of each call; of `tf.distribute.DistributedValues` the part of the replica.
          kwargs: as `args`.
          options: a `tf.distribute.RunOptions`, which changes nothing here.

        Returns:
          What the calls return, as `tf.distribute.DistributedValues`.

        Raises:
          UnsupportedError: if it would run eagerly, which a TPU does not either.
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
        """The resolver that the strategy was given, else one that finds the same system."""
        if self.extended.resolver is None:
            # By its name in TensorFlow: install() has put the emulated one there.
            self.extended.resolver = tf.distribute.cluster_resolver.TPUClusterResolver('local')
        return self.extended.resolver

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> Any:
        """The tensor: a replica has one core.

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
        """The tensor: a replica has one core.

        Args:
          tensor: of known rank.
          partition_dimensions: into how many parts to split each dimension: all are 1.

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
        """The tensor: a replica has one core."""
        return tensor


class TPUStrategyV2(_Emulated, tf.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.distribute.TPUStrategy`."""

    _is_name_of_tensorflow = True

    def __init__(self, tpu_cluster_resolver: Any = None,
                 experimental_device_assignment: Any = None,
                 experimental_spmd_xla_partitioning: bool = False):
        """Makes replicas on logical CPU devices.

        Args:
          tpu_cluster_resolver: a `TPUClusterResolver` of this package, whose system has a replica
            on each of its cores; `None` is the system that `install()` was told of.
          experimental_device_assignment: a `tf.tpu.experimental.DeviceAssignment` of fewer
            replicas, each on one core.
          experimental_spmd_xla_partitioning: changes nothing for replicas of one core.

        Raises:
          SetupError: if there are too few logical CPU devices, and it is too late for more.
          UnsupportedError: for replicas of several cores.
        """
        # Not that of MirroredStrategy, which makes an `extended` of its own.
        super(tf.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, experimental_device_assignment,
            experimental_spmd_xla_partitioning))


class TPUStrategy(_Emulated, tf.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.distribute.experimental.TPUStrategy`."""

    _is_name_of_tensorflow = True

    def __init__(self, tpu_cluster_resolver: Any = None, device_assignment: Any = None):
        """Makes replicas as `TPUStrategyV2` does, whose arguments and errors these are."""
        super(tf.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, device_assignment))


class TPUStrategyV1(_Emulated, tf.compat.v1.distribute.MirroredStrategy, metaclass=_AnyOfThree):
    """`tf.compat.v1.distribute.experimental.TPUStrategy`."""

    _is_name_of_tensorflow = True

    def __init__(self, tpu_cluster_resolver: Any = None, steps_per_run: int | None = None,
                 device_assignment: Any = None):
        """Makes replicas as `TPUStrategyV2` does; `steps_per_run` changes nothing."""
        super(tf.compat.v1.distribute.MirroredStrategy, self).__init__(Extended(
            self, tpu_cluster_resolver, device_assignment, steps_per_run=steps_per_run))

    @property
    def steps_per_run(self) -> int:
        """What the strategy was given, or 1."""
        return int(self.extended.steps_per_run)
