"""Strategies: the coordinator of a cluster, replicas, logical devices, TPUStrategy's module.

The package does not hand out these functions: its users import this module itself. There are
three: the strategies of plain Estimators (`_distribution.py`), the emulated TPUStrategy
(`midlevel/`), and `compat/`, which puts that strategy in its place.
"""

from __future__ import annotations

from typing import Any


def coordinator() -> Any:
    """The module that configures a strategy for a process of a cluster and starts its server.

    Its `run_distribute_coordinator` has no public name; Keras has copies of its own, which know
    no evaluators. Checked: 2.16-2.21.
    """
    from tensorflow.python.distribute import distribute_coordinator
    return distribute_coordinator


def task() -> Any:
    """What the coordinator says of the process or thread in which it calls: type, id, address.

    Checked: 2.16-2.21.
    """
    from tensorflow.python.distribute import distribute_coordinator_context
    return distribute_coordinator_context.get_current_worker_context()


def mirrored_extended() -> Any:
    """The class of `tf.distribute.MirroredStrategy().extended`, which makes no other.

    A derived class may override `_experimental_distribute_dataset(dataset, options)`,
    `_distribute_datasets_from_function(dataset_fn, options)` and `_update_config_proto(config)`,
    and may set `_input_workers_devices`: for each call of a `dataset_fn` the device of its
    dataset and the devices of the replicas that it feeds. Checked: 2.16-2.21.
    """
    from tensorflow.python.distribute import mirrored_strategy
    return mirrored_strategy.MirroredExtended


def tpu_strategy_module() -> Any:
    """The module that defines `TPUStrategyV2`, `TPUStrategy` and `TPUStrategyV1`.

    Other modules of TensorFlow ask it for these names when they call `isinstance`; it does not
    look them up itself. Checked: 2.16-2.21.
    """
    from tensorflow.python.distribute import tpu_strategy
    return tpu_strategy


def add_logical_cpus(count: int) -> None:
    """Makes the one logical CPU `count` of them, also after operations have run.

    The public way, `tf.config.set_logical_device_configuration`, fails then; and what it sets
    holds for sessions that are given no config too, while this leaves sessions as they are.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.eager import context
    context.context().set_logical_cpu_devices(count)


def hardware_with_accelerator() -> Any:
    """The proto, for `tf.tpu.experimental.HardwareFeature`, of a TPU that has tables (V1).

    Checked: 2.16-2.21.
    """
    from tensorflow.core.protobuf.tpu import topology_pb2
    return topology_pb2.TPUHardwareFeature(
        embedding_feature=topology_pb2.TPUHardwareFeature.EmbeddingFeature.V1)


def whole_shard(shape: tuple[int, ...]) -> Any:
    """What says which part of a variable an initializer makes: all of it. Checked: 2.16-2.21."""
    from tensorflow.python.trackable import base
    return base.ShardInfo(shape, (0,) * len(shape))
