"""Strategies: the coordinator of a cluster, replicas, logical devices, TPUStrategy's module.

`_tf` does not hand out these functions; their three users import this module. `_distribution.py`
runs the strategies of plain Estimators, `midlevel/` emulates TPUStrategy, and `compat/` puts the
emulated class in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def coordinator() -> Any:
    """Returns the module that configures a process of a cluster and starts its server.

    Its `run_distribute_coordinator` has no public name. The copies of Keras know no evaluators.
    """
    from tensorflow.python.distribute import distribute_coordinator
    return distribute_coordinator


def task() -> Any:
    """Returns the task of the process or thread that the coordinator calls: type, id, address."""
    from tensorflow.python.distribute import distribute_coordinator_context
    return distribute_coordinator_context.get_current_worker_context()


def mirrored_extended() -> Any:
    """Returns the class of `tf.distribute.MirroredStrategy().extended`.

    The public strategy makes no other class. Derived classes may override these methods:
    `_experimental_distribute_dataset(dataset, options)`,
    `_distribute_datasets_from_function(dataset_fn, options)` and `_update_config_proto(config)`.
    They may set `_input_workers_devices`. For each call of a `dataset_fn` it has the device of
    the dataset, and the devices of the replicas that the dataset feeds.
    """
    from tensorflow.python.distribute import mirrored_strategy
    return mirrored_strategy.MirroredExtended


def tpu_strategy_module() -> Any:
    """Returns the module that defines `TPUStrategyV2`, `TPUStrategy` and `TPUStrategyV1`.

    Other modules of TensorFlow ask it for these names when they call `isinstance`. The module
    itself does not look them up.
    """
    from tensorflow.python.distribute import tpu_strategy
    return tpu_strategy


def add_logical_cpus(count: int) -> None:
    """Splits the logical CPU into `count` of them, also after operations have run.

    The public `tf.config.set_logical_device_configuration` fails then. It also changes sessions
    that are given no config, while this function leaves sessions alone.
    """
    from tensorflow.python.eager import context
    context.context().set_logical_cpu_devices(count)


def hardware_with_accelerator() -> Any:
    """Returns the proto of a TPU with tables (V1), for `tf.tpu.experimental.HardwareFeature`."""
    from tensorflow.core.protobuf.tpu import topology_pb2
    return topology_pb2.TPUHardwareFeature(
        embedding_feature=topology_pb2.TPUHardwareFeature.EmbeddingFeature.V1)


def whole_shard(shape: tuple[int, ...]) -> Any:
    """Returns the `shard_info` of an initializer for a whole variable."""
    from tensorflow.python.trackable import base
    return base.ShardInfo(shape, (0,) * len(shape))


def change_datasets(distributed: Any, change: Callable[[Any], Any]) -> None:
    """Puts others in the places of the datasets that a distributed dataset has, one for each host.

    They are what TensorFlow has made of the user's dataset, whose batches and files it divides
    first. There is no iterator yet.
    """
    distributed._cloned_datasets = [change(dataset) for dataset in distributed._cloned_datasets]


def set_device_options(iterator: Any, options: Any) -> None:
    """Gives options to what an iterator of a distributed dataset prefetches to each device.

    These datasets are made inside `iter` and have no options of their own. So each is put, with
    options, in the place of the one that has not begun.
    """
    import tensorflow as tf
    for of_host in iterator._iterators:
        for of_device in of_host._iterator._device_iterators:
            resource = of_device._iterator_resource
            with tf.device(resource.device):
                # The iterator keeps its dataset alive.
                of_device._dataset = of_device._dataset.with_options(options)
                tf.raw_ops.MakeIterator(
                    dataset=of_device._dataset._variant_tensor, iterator=resource)
