"""Derives the number of replicas, and the way that input reaches them, from a `TPUConfig`."""

from __future__ import annotations

from typing import Any

from ..core import deployment
from ..core.deployment import Deployment
from ..core.specs import Topology
from ..errors import ConfigError
from .system import topology_of
from .tpu_config import InputPipelineConfig, TPUConfig
from .workers import choice_of

_TRAIN, _PREDICT = 'train', 'predict'


def deploy(config: Any, verb: str, batch_size: int) -> Deployment:
    """Returns how one run of a TPUEstimator is fed.

    Args:
      config: the RunConfig.
      verb: `'train'`, `'evaluate'` or `'predict'`.
      batch_size: samples of all cores per step, in the sense of the input mode.

    Raises:
      ValueError, RuntimeError: as the original does, for settings that do not fit the system.
      ConfigError: if the replicas do not divide the batch size.
    """
    tpu_config: TPUConfig = config.tpu_config
    master = config.evaluation_master if verb == 'evaluate' else config.master
    system = topology_of(master, config.cluster, tpu_config.num_shards,
                         tpu_config.num_cores_per_replica or 1, choice_of(config))
    topology, hosts = _replicas(system, tpu_config)
    mode = _mode(tpu_config, verb)
    copies = mode == InputPipelineConfig.BROADCAST
    if not copies:
        name = 'eval' if verb == 'evaluate' else verb
        problem = topology.batch_problem(f'{name} batch size', batch_size)
        if problem is not None:
            raise ConfigError(problem)
    of_core = batch_size if copies else batch_size // topology.num_cores
    per_core = mode == InputPipelineConfig.PER_SHARD_V1 or topology.num_hosts != system.num_hosts
    if per_core:
        invocations = deployment.per_core(topology, hosts)
    elif mode in (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.PER_HOST_V2):
        invocations = deployment.per_host(topology)
    else:
        invocations = deployment.for_all(topology)
    share = ('copies' if copies else 'elements'
             if per_core or mode == InputPipelineConfig.PER_HOST_V2 else 'split')
    of_input = of_core * (len(invocations[0].cores) if share == 'split' else 1)
    return Deployment(topology=topology, system=system, share=share, invocations=invocations,
                      batch_size=batch_size, batch_size_per_core=of_core,
                      input_batch_size=of_input,
                      is_model_parallel=bool(tpu_config.num_cores_per_replica))


def _mode(config: TPUConfig, verb: str) -> int:
    """Returns the input mode of one verb.

    In one mode the original splits the batch of its only host among the cores. Here that mode
    makes one call for all cores, on any number of hosts.
    """
    mode = config.per_host_input_for_training
    if verb == _TRAIN:
        return mode
    if config.eval_training_input_configuration == InputPipelineConfig.SLICED or mode in (
            InputPipelineConfig.PER_SHARD_V1, InputPipelineConfig.PER_HOST_V1):
        return InputPipelineConfig.SLICED
    return mode


def _replicas(system: Topology, config: TPUConfig) -> tuple[Topology, list[int]]:
    """Returns the replicas of the model as cores of a topology, and the host of each."""
    cores = config.num_cores_per_replica
    if cores is None or cores == 1:
        return system, [core // system.cores_per_host for core in range(system.num_cores)]
    if cores > system.num_cores:
        raise ValueError(
            'The num of cores required by the model parallelism, specified by '
            'TPUConfig.num_cores_per_replica, is larger than the total num of TPU cores in the '
            f'system. num_cores_per_replica: {cores}, num cores in the system: '
            f'{system.num_cores}.  State the size: etpe run --hosts H --cores C, or '
            'install(hosts=H, cores=C).')
    if system.num_cores % cores:
        raise RuntimeError(
            f'The num of cores in the system ({system.num_cores}) is not divisible by the num of '
            f'cores ({cores}) required by the model parallelism, specified by '
            'TPUConfig.num_cores_per_replica. This should never happen!')
    replicas = system.num_cores // cores
    hosts = [replica * cores // system.cores_per_host for replica in range(replicas)]
    if cores > system.cores_per_host:
        if config.per_host_input_for_training != InputPipelineConfig.PER_HOST_V2:
            raise ValueError(
                'Except the PER_HOST_V2 mode, the num of cores required by model parallelism '
                'specified by TPUConfig.num_cores_per_replica should be less than or equal to '
                f'the num_cores_per_host. num_cores_per_replica: {cores}, num_cores_per_host: '
                f'{system.cores_per_host}')
        return Topology(num_hosts=replicas, cores_per_host=1), hosts
    if system.cores_per_host % cores:
        raise RuntimeError(
            f'The num of cores of a host ({system.cores_per_host}) is not divisible by '
            f'TPUConfig.num_cores_per_replica ({cores}).  Change the size of the emulated system.')
    return Topology(num_hosts=system.num_hosts,
                    cores_per_host=system.cores_per_host // cores), hosts
