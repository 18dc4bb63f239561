"""Holds `TPUContext`, which tells an input_fn or a model_fn its place in the system."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.deployment import Deployment, Invocation
from .system import tpu_topology

_HOST_DEVICE = '/device:CPU:0'
"""A `tf.device` scope with it stays in the process that has the surrounding operations."""

_BROADCASTING_DEVICE = f'/replica:0/task:0{_HOST_DEVICE}'
"""The original's name of the one host that calls input_fn for all."""


class TPUContext:
    """The place of one call of an input_fn or a model_fn in the system: `params['context']`.

    The second of two hosts, with four cores each, calls its input_fn:

    >>> from estimator_tpu_embedding import RunConfig, TPUClusterResolver
    >>> from estimator_tpu_embedding.estimator.system import deploy
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
        device = _BROADCASTING_DEVICE if self._deployment.has_copies else _HOST_DEVICE
        return (device, invocation.index, len(self._deployment.invocations),
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

        It is `None` unless the job sets `num_cores_per_replica`.

        Core `c` of host `h` is at `(c, h, 0, 0)`; replicas take cores in order.

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
    """The system, and the batches of one mode: `TPUEstimator._ctx`, which hooks read."""

    def __init__(self, deploy: Callable[[str], Deployment], mode: str, on_cpu: Callable[[str], bool]
                 ):
        """Describes a TPUEstimator.

        Args:
          deploy: mode -> how its run is fed.
          mode: `'train'`, `'eval'` or `'infer'`.
          on_cpu: mode -> whether its run is that of a plain Estimator.
        """
        super().__init__(deploy(mode))
        self.mode = mode
        self._deploy, self._on_cpu = deploy, on_cpu

    @contextlib.contextmanager
    def with_mode(self, mode: str) -> Iterator[EstimatorContext]:
        """Gives the context of another mode."""
        yield EstimatorContext(self._deploy, mode, self._on_cpu)

    def is_running_on_cpu(self, is_export_mode: bool = False) -> bool:
        """Whether a run of the mode, or an export, is that of a plain Estimator."""
        return is_export_mode or self._on_cpu(self.mode)

    @property
    def num_cores(self) -> int:
        """The number of cores of the system."""
        return self._deployment.system.num_cores

    @property
    def num_of_cores_per_host(self) -> int:
        """The number of cores of one host."""
        return self._deployment.system.cores_per_host

    @property
    def num_of_replicas_per_host(self) -> int:
        """The number of replicas that one host feeds."""
        return self._deployment.topology.cores_per_host

    @property
    def model_parallelism_enabled(self) -> bool:
        """Whether the job sets `num_cores_per_replica`."""
        return self._deployment.is_model_parallel

    @property
    def global_batch_size(self) -> int:
        """The samples of all cores per step."""
        return self._deployment.batch_size

    @property
    def batch_size_for_input_fn(self) -> int:
        """The samples of one element of the input."""
        return self._deployment.input_batch_size

    @property
    def batch_size_for_model_fn(self) -> int:
        """The samples of one replica."""
        return self._deployment.batch_size_per_core
