"""Finds the size of the emulated system, its replicas, and the way that input reaches them.

`TPUContext` tells an input_fn or a model_fn of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from .. import defaults
from ..cluster.worker_choice import ClusterChoice
from ..core.deployment import Deployment, Invocation, per_host
from ..core.specs import System, Topology
from ..errors import ConfigError, Problem, counted
from ..hosts.tpu_system import tpu_topology
from ..runner.progress import announce
from .tpu_addresses import choice_of
from .tpu_config import InputPipelineConfig, TPUConfig

_HOST_DEVICE = '/device:CPU:0'
"""A `tf.device` scope with it stays in the process that has the surrounding operations."""

CORES_PER_TPU_HOST = 8
"""Cores of a host of the TPU v2 and v3 systems that TF1 jobs were written for."""


def topology_of(master: str | None, resolver: Any, num_shards: int | None,
                cores_per_replica: int = 1, choice: ClusterChoice = ClusterChoice()) -> Topology:
    """Returns the topology that a job runs on; `master` is for messages.

    Raises:
      ValueError: if the system has another number of replicas than `num_shards`.
      ConfigError: if somebody asked for another number of hosts than there are workers.
    """
    system = defaults.system_of(resolver)
    if choice.is_used:
        system = _of_workers(choice, system, num_shards, cores_per_replica)
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
            f'`None`.  The emulated system is {system.topology}, as was asked for. Ask for the '
            f'{counted(num_shards * cores_per_replica, "core")} of this job (etpe run '
            f'{_flags(num_shards * cores_per_replica)}), or change TPUConfig.num_shards, which '
            'jobs often have an option for.')
    return _sized_by(num_shards, cores_per_replica)


def _of_workers(choice: ClusterChoice, system: System, num_shards: int | None,
                cores_per_replica: int) -> System:
    """Returns the system whose hosts are workers. Cores that nobody stated follow from shards."""
    stated = system.topology.num_hosts
    # One host is also the number that nobody stated; `install()` compares what it is given.
    problem = choice.hosts_problem(stated if system.is_explicit and stated > 1 else None)
    if problem is not None:
        raise ConfigError(problem)
    cores = system.topology.cores_per_host
    if not system.is_explicit and num_shards is not None:
        cores = max(num_shards * cores_per_replica // choice.num_hosts, 1)
    return System(Topology(num_hosts=choice.num_hosts, cores_per_host=cores), is_explicit=True)


def _flags(num_cores: int) -> str:
    """Returns the flags of `etpe run` for so many cores."""
    hosts = max(num_cores // CORES_PER_TPU_HOST, 1)
    return f'{f"--hosts {hosts} " if hosts > 1 else ""}--cores {num_cores // hosts}'


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


def deploy(config: Any, verb: str, batch_size: int) -> Deployment:
    """Returns how `'train'`, `'evaluate'` or `'predict'` of a TPUEstimator is fed.

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
        invocations = tuple(Invocation(index=core, host=host, cores=(core,), name=f'core {core}')
                            for core, host in enumerate(hosts))
    elif mode in (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.PER_HOST_V2):
        invocations = per_host(topology)
    else:  # One call, on host 0.
        invocations = per_host(Topology(cores_per_host=topology.num_cores))
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
    if verb == 'train':
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


class TPUContext:
    """The place of one call of an input_fn or a model_fn in the system: `params['context']`.

    The second of two hosts, with four cores each, calls its input_fn:

    >>> from estimator_tpu_embedding import RunConfig, TPUClusterResolver
    >>> from estimator_tpu_embedding.estimator.tpu_context import deploy
    >>> config = RunConfig(cluster=TPUClusterResolver(hosts=2, cores=4))
    >>> deployment = deploy(config, 'train', 64)
    >>> context = TPUContext(deployment, deployment.invocations[1])
    >>> context.num_hosts, context.num_replicas, context.current_host
    (2, 8, 1)
    >>> context.current_input_fn_deployment()[1:]  # Call 1 of 2, for 4 replicas.
    (1, 2, 4)
    """

    def __init__(self, deployment: Deployment, invocation: Invocation | None = None):
        """Describes a deployment to one invocation of input_fn, or to a model_fn without one."""
        self._deployment = deployment
        self._invocation = invocation

    def current_input_fn_deployment(self) -> tuple[str, int, int, int]:
        """Returns host device, index of this call, number of calls, replicas of this call."""
        invocation = self._called_from_input_fn()
        # With BROADCAST the original names the one host that calls input_fn for all.
        task = '/replica:0/task:0' if self._deployment.has_copies else ''
        return (f'{task}{_HOST_DEVICE}', invocation.index, len(self._deployment.invocations),
                len(invocation.cores))

    @property
    def current_host(self) -> int:
        """The number of the host whose input_fn is called.

        Raises:
          RuntimeError: in a model_fn.
        """
        return self._called_from_input_fn().host

    @property
    def num_replicas(self) -> int:
        """The number of replicas of the model."""
        return self._deployment.topology.num_cores

    @property
    def num_hosts(self) -> int:
        """The number of hosts of the system."""
        return self._deployment.system.num_hosts

    @property
    def num_of_replicas_per_host(self) -> int:
        """The number of replicas that one host feeds.

        Raises:
          ValueError: where the job sets `num_cores_per_replica`, as in the original.
        """
        if self._deployment.is_model_parallel:
            raise ValueError('num_of_replicas_per_host is not supported for model_parallelism')
        return self._deployment.topology.cores_per_host

    @property
    def device_assignment(self) -> Any:
        """The cores of each replica, as a `DeviceAssignment`.

        It is `None` unless the job sets `num_cores_per_replica`. Core `c` of host `h` is at
        `(c, h, 0, 0)`; replicas take cores in order.

        Raises:
          RuntimeError: in an input_fn.
        """
        if self._invocation is not None:
            raise RuntimeError('This TPUContext instance must not be called from input_fn.')
        if not self._deployment.is_model_parallel:
            return None
        system = self._deployment.system
        places = [[core, host, 0, 0] for host in range(system.num_hosts)
                  for core in range(system.cores_per_host)]
        size = self._cores_per_replica
        return tf.tpu.experimental.DeviceAssignment(tpu_topology(system), [
            places[first:first + size] for first in range(0, system.num_cores, size)])

    def device_for_replica(self, replica_id: int) -> tuple[str, int]:
        """Returns the host device of a replica and the ordinal of its core on that host."""
        return '/task:0/device:CPU:0', (
            replica_id * self._cores_per_replica % self._deployment.system.cores_per_host)

    @property
    def tpu_host_placement_function(self) -> Callable[[int], str]:
        """A function from a host to its device string."""
        return lambda host_id: _HOST_DEVICE

    @property
    def _cores_per_replica(self) -> int:
        return self._deployment.system.num_cores // self._deployment.topology.num_cores

    def _called_from_input_fn(self) -> Invocation:
        if self._invocation is None:
            raise RuntimeError('This TPUContext instance must not be called from model_fn.')
        return self._invocation


class EstimatorContext(TPUContext):
    """The system, and the batches of one mode: `TPUEstimator._ctx`, which hooks read.

    Its attributes are those of the original. `batch_size_for_input_fn` is the size of one element
    of the input.
    """

    def __init__(self, deploy: Callable[[str], Deployment], mode: str, on_cpu: Callable[[str], bool]
                 ):
        """Describes a TPUEstimator: how each mode is fed, and whether it runs as a plain one."""
        deployment = deploy(mode)
        super().__init__(deployment)
        self.mode = mode
        self._deploy, self._on_cpu = deploy, on_cpu
        self.num_cores = deployment.system.num_cores
        self.num_of_cores_per_host = deployment.system.cores_per_host
        self.model_parallelism_enabled = deployment.is_model_parallel
        self.global_batch_size = deployment.batch_size
        self.batch_size_for_input_fn = deployment.input_batch_size
        self.batch_size_for_model_fn = deployment.batch_size_per_core

    @contextlib.contextmanager
    def with_mode(self, mode: str) -> Iterator[EstimatorContext]:
        """Gives the context of another mode."""
        yield EstimatorContext(self._deploy, mode, self._on_cpu)

    def is_running_on_cpu(self, is_export_mode: bool = False) -> bool:
        """Whether a run of the mode, or an export, is that of a plain Estimator."""
        return is_export_mode or self._on_cpu(self.mode)

    @property
    def num_of_replicas_per_host(self) -> int:
        """The number of replicas that one host feeds."""
        return self._deployment.topology.cores_per_host
