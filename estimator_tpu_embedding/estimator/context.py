"""`TPUContext`: what `params['context']` tells an input_fn or a model_fn about the system."""

from __future__ import annotations

from collections.abc import Callable

from ..core.specs import Topology

_HOST_DEVICE = '/replica:0/task:0/device:CPU:0'
"""All emulated hosts are this process, so a `tf.device` scope of any host can be placed."""


class TPUContext:
    """One context of one call of an input_fn (`host` given) or of a model_fn."""

    def __init__(self, topology: Topology, host: int | None = None):
        """Describes `topology` to the input_fn of `host`, or to a model_fn."""
        self._topology = topology
        self._host = host

    def current_input_fn_deployment(self) -> tuple[str, int, int, int]:
        """Device string of the host, invocation index, invocations, replicas fed by this one."""
        return (_HOST_DEVICE, self.current_host, self._topology.num_hosts,
                self._topology.cores_per_host)

    @property
    def current_host(self) -> int:
        """The host whose input_fn is called.

        Raises:
          RuntimeError: in a model_fn.
        """
        if self._host is None:
            raise RuntimeError('This TPUContext instance must not be called from model_fn.')
        return self._host

    @property
    def num_replicas(self) -> int:
        """Replicas of the model."""
        return self._topology.num_cores

    @property
    def num_hosts(self) -> int:
        """Hosts of the system."""
        return self._topology.num_hosts

    @property
    def num_of_replicas_per_host(self) -> int:
        """Replicas that one host feeds."""
        return self._topology.cores_per_host

    @property
    def device_assignment(self) -> None:
        """`None`: there is no model parallelism.

        Raises:
          RuntimeError: in an input_fn.
        """
        if self._host is not None:
            raise RuntimeError('This TPUContext instance must not be called from input_fn.')
        return None

    def device_for_replica(self, replica_id: int) -> tuple[str, int]:
        """The host device of a replica and the ordinal of its core on that host."""
        return '/task:0/device:CPU:0', replica_id % self._topology.cores_per_host

    @property
    def tpu_host_placement_function(self) -> Callable[[int], str]:
        """Host -> its device string."""
        return lambda host_id: _HOST_DEVICE
