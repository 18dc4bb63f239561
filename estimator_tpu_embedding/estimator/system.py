"""Finds the size of the emulated TPU system that a job runs on."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .. import defaults
from ..core.specs import Topology
from ..errors import ConfigError, Problem
from ..runner.progress import announce

CORES_PER_TPU_HOST = 8
"""Cores of a host of the TPU v2 and v3 systems that TF1 jobs were written for."""


def tpu_topology(system: Topology) -> Any:
    """Returns the `tf.tpu.experimental.Topology`: core `c` of host `h` is at `(c, h, 0, 0)`."""
    return tf.tpu.experimental.Topology(
        mesh_shape=[system.cores_per_host, system.num_hosts, 1, 1],
        device_coordinates=[[[core, host, 0, 0] for core in range(system.cores_per_host)]
                            for host in range(system.num_hosts)])


def topology_of(master: str | None, resolver: Any, num_shards: int | None,
                cores_per_replica: int = 1) -> Topology:
    """Returns the topology that a job runs on.

    Args:
      master: `master` of the RunConfig, for evaluations its `evaluation_master`. Every address
        means the emulated system.
      resolver: the cluster resolver of the RunConfig, or `None`.
      num_shards: the number of replicas that the TPUConfig states, or `None`.
      cores_per_replica: cores of each replica.

    Raises:
      ValueError: if the system has another number of replicas than `num_shards`.
    """
    system = defaults.system_of(resolver)
    if num_shards is None or num_shards * cores_per_replica == system.topology.num_cores:
        return system.topology
    if system.is_explicit:
        raise ValueError(
            'TPUConfig.num_shards is not set correctly. According to TPU system metadata for '
            f'Tensorflow master ({master or ""}): num_replicas should be '
            f'({system.topology.num_cores // cores_per_replica}), got ({num_shards}). '
            'For non-model-parallelism, num_replicas should be the total num of TPU cores in the '
            'system. For model-parallelism, the total number of TPU cores should be '
            'num_cores_per_replica * num_replicas. Please set it accordingly or leave it as '
            f'`None`.  The emulated system is {system.topology}: change num_shards, or the size '
            'that was asked for.')
    return _sized_by(num_shards, cores_per_replica)


def _sized_by(num_shards: int, cores_per_replica: int) -> Topology:
    """Returns a system for `num_shards` replicas, with eight cores per host."""
    num_cores = num_shards * cores_per_replica
    if num_cores > CORES_PER_TPU_HOST and num_cores % CORES_PER_TPU_HOST:
        raise ConfigError(Problem(
            'E410', 'TPUConfig.num_shards', f'a system of more than {CORES_PER_TPU_HOST} cores '
            f'has {CORES_PER_TPU_HOST} per host', str(num_cores),
            'State the size: etpe run --hosts H --cores C, or install(hosts=H, cores=C).'))
    cores = min(num_cores, CORES_PER_TPU_HOST)
    topology = Topology(num_hosts=num_cores // cores, cores_per_host=cores)
    announce(f'TPUConfig.num_shards={num_shards} sets the size of the emulated system: '
             f'{topology}')
    return topology
