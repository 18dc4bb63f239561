"""Holds `TPUContext`, which tells an input_fn or a model_fn its place in the system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.deployment import Deployment, Invocation
from .system import tpu_topology

_HOST_DEVICE = '/device:CPU:0'
"""A `tf.device` scope with it stays in the process that has the surrounding operations."""


class TPUContext:
    """The place of one call of an input_fn or a model_fn in the system: `params['context']`.

    The second of two hosts, with four cores each, calls its input_fn:

    >>> from estimator_tpu_embedding import RunConfig, TPUClusterResolver
    >>> from estimator_tpu_embedding.estimator.deployment import deploy
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
        return (_HOST_DEVICE, invocation.index, len(self._deployment.invocations),
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
