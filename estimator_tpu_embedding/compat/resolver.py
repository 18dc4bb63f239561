"""A `TPUClusterResolver` that finds the emulated system."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf, defaults
from ..core.specs import System
from ..errors import ConfigError
from ..estimator import addresses
from ..estimator.system import tpu_topology
from ..runner.progress import announce
from . import devices


_CloudResolver: Any = _tf.tpu_cluster_resolver_module().TPUClusterResolver


class TPUClusterResolver(_CloudResolver):
    """Resolves every name and address to the emulated system; says so of a real one.

    `cluster_spec()` has one task per emulated host, as for a TPU that is found by name.
    `num_accelerators()` has the cores of each host. The addresses of the tasks end in `.invalid`,
    which no name server may ever resolve, so nobody is contacted. `master()` is `''` all the same:
    the system is in this process, and so is a session that is opened there.

    >>> resolver = TPUClusterResolver('node-1', hosts=2, cores=4)
    >>> resolver.cluster_spec().num_tasks('worker'), resolver.num_accelerators()
    (2, {'TPU': 4})
    """

    def __init__(self, tpu: str | None = None, zone: str | None = None,
                 project: str | None = None, job_name: str = 'worker',
                 coordinator_name: str | None = None, coordinator_address: str | None = None,
                 credentials: Any = 'default', service: Any = None,
                 discovery_url: str | None = None, *, hosts: int | None = None,
                 cores: int | None = None):
        """Finds the emulated system.

        Args:
          tpu: name or address of a TPU, as scripts have it in their flags. `'local'` has an empty
            cluster, as in the original; `None` and `''`, which there mean the TPU that the
            environment names, have one like any name.
          zone: ignored, like all that only the cloud needs.
          project: ignored.
          job_name: of the emulated hosts in `cluster_spec()`.
          coordinator_name: of another job there; no server is started.
          coordinator_address: of that job; without one it has an address that leads nowhere.
          credentials: ignored.
          service: ignored.
          discovery_url: ignored.
          hosts: hosts of the system; `None` takes the system that `install` was told of.
          cores: cores per host; `None` as for `hosts`.

        Raises:
          ConfigError: for numbers out of range.
        """
        super().__init__('local', job_name=job_name)  # Under that name it asks no cloud.
        self._stated = System.sized(hosts, cores)
        if problems := list(self._stated.problems()):
            raise ConfigError(*problems)
        devices.tell_of(self)
        self._has_cluster = tpu != 'local'
        self._other_jobs = {} if not coordinator_name else {
            coordinator_name: [coordinator_address or addresses.COORDINATOR]}
        if tpu not in (None, '', 'local'):
            addresses.remember(tpu)
            announce(f'TPUClusterResolver({tpu!r}) finds the emulated system: no TPU is asked')

    @property
    def emulated_system(self) -> System:
        """The system that a TPUEstimator with this resolver runs on."""
        return self._stated if self._stated.is_explicit else defaults.current().system

    @staticmethod
    def connect(tpu: str | None = None, zone: str | None = None, project: str | None = None
                ) -> TPUClusterResolver:
        """A resolver; the emulated system needs neither a connection nor initialisation."""
        return TPUClusterResolver(tpu, zone, project)

    def get_tpu_system_metadata(self) -> Any:
        """The size of the emulated system, as a `TPUSystemMetadata`."""
        size = self.emulated_system.topology
        return tf.tpu.experimental.TPUSystemMetadata(
            num_cores=size.num_cores, num_hosts=size.num_hosts,
            num_of_cores_per_host=size.cores_per_host, topology=tpu_topology(size), devices=[])

    def master(self, task_type: str | None = None, task_id: int | None = None,
               rpc_layer: str | None = None) -> str:
        """`''`: the system is in this process."""
        return ''

    def get_master(self) -> str:
        """`''`, as `master()`."""
        return ''

    def cluster_spec(self) -> tf.train.ClusterSpec:
        """One task per emulated host, at addresses that lead nowhere; none of `'local'`."""
        if not self._has_cluster:
            return tf.train.ClusterSpec({})
        return addresses.emulated_cluster(
            self.emulated_system.topology, self.get_job_name(), self._other_jobs)

    def num_accelerators(self, task_type: str | None = None, task_id: int | None = None,
                         config_proto: Any = None) -> dict[str, int]:
        """Cores per host, as TensorFlow's resolver reports them."""
        return {'TPU': self.emulated_system.topology.cores_per_host}

    @property
    def environment(self) -> str:
        """`''`, as outside of Google."""
        return ''

    def __deepcopy__(self, memo: dict[int, Any]) -> TPUClusterResolver:
        """Resolvers are values here."""
        return self
