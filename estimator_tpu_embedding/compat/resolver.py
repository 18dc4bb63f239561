"""Defines the `TPUClusterResolver` that finds the emulated system, and lists its cores as devices.

Scripts count the cores of a TPU with `tf.config.list_logical_devices` and its siblings. There are
no devices of the listed names: TensorFlow's soft placement, which is on outside of sessions, runs
their operations on the CPU.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf, defaults
from ..cluster.addresses import split
from ..core.specs import System
from ..errors import ConfigError, Problem, UnsupportedError, shown
from ..estimator import tpu_addresses
from ..hosts.placement import HOST_JOB
from ..hosts.tpu_system import tpu_topology
from ..runner.progress import announce

_last: Any = None
"""The resolver of the system whose cores are listed."""


class _EmulatedClient:
    """Stands for TensorFlow's client of a cloud, which scripts reach through the resolver."""

    def api_available(self) -> bool:
        """Returns `False`: there is no cloud to ask."""
        return False

    def configure_tpu_version(self, version: str, restart_type: str = 'always') -> None:
        """Changes nothing but says so: the emulated system has the TensorFlow of this process."""
        announce(f'configure_tpu_version({version!r}) changes nothing: the emulated system runs '
                 f'TensorFlow {tf.__version__}')

    def wait_for_healthy(self, timeout_s: int = 1200, interval: int = 30) -> None:
        """Returns at once."""


_CloudResolver: Any = _tf.tpu_cluster_resolver_module().TPUClusterResolver


class TPUClusterResolver(_CloudResolver):
    """Resolves every name and address to the emulated system, and logs the name of a real TPU.

    `cluster_spec()` has one task per emulated host, as for a TPU that is found by name, and
    `num_accelerators()` has the cores of each. The addresses of the tasks end in `.invalid`. No
    name server may ever resolve these, so nobody is contacted. `master()` is `''` nevertheless:
    the system is in this process, and so are the sessions that are opened there.

    >>> resolver = TPUClusterResolver('node-1', hosts=2, cores=4)
    >>> resolver.cluster_spec().num_tasks('worker'), resolver.num_accelerators()
    (2, {'TPU': 4})
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes TensorFlow's resolver, where jobs run on a real TPU."""
        choices = defaults.current()
        if choices.backend == 'tpu' and choices.graph_only is None:
            try:
                found = _CloudResolver(*args, **kwargs)
                found.master(), found.cluster_spec()
            except (OSError, RuntimeError, ValueError) as error:
                raise UnsupportedError(Problem(
                    'E939', 'TPUClusterResolver', 'it must find a TPU',
                    f'{type(error).__name__}: {shown(error, 200)}', 'Give it an address such as '
                    'grpc://10.0.0.2:8470, or "local" on a TPU VM; or leave out backend="tpu" '
                    '(etpe run --backend) for an emulated system.')) from error
            return found
        return super().__new__(cls)

    def __init__(self, tpu: str | None = None, zone: str | None = None,
                 project: str | None = None, job_name: str = 'worker',
                 coordinator_name: str | None = None, coordinator_address: str | None = None,
                 credentials: Any = 'default', service: Any = None,
                 discovery_url: str | None = None, *, hosts: int | None = None,
                 cores: int | None = None):
        """Finds the emulated system.

        Args:
          tpu: name or address of a TPU, as scripts have it in their flags. `'local'` has an empty
            cluster, as in the original. There, `None` and `''` mean the TPU that the environment
            names; here they have a cluster like any name.
          zone: ignored, like all arguments that only the cloud needs.
          project: ignored.
          job_name: job of the emulated hosts in `cluster_spec()`; workers have one of their own.
          coordinator_name: another job in `cluster_spec()`; no server is started.
          coordinator_address: address of that job; by default it leads nowhere.
          credentials: ignored.
          service: ignored.
          discovery_url: ignored.
          hosts: hosts of the system; `None` takes the system of `install`.
          cores: cores per host; `None` takes the system of `install`.

        Raises:
          ConfigError: for numbers out of range.
        """
        super().__init__('local', job_name=job_name)  # For this name it asks no cloud.
        self._cloud_tpu_client = _EmulatedClient()
        self._stated = System.sized(hosts, cores)
        if problems := list(self._stated.topology.problems()):
            raise ConfigError(*problems)
        global _last
        _last = self
        self.stated_addresses = tuple(
            split(tpu) if isinstance(tpu, str) else tpu or ())
        self._has_cluster = tpu != 'local'
        self._other_jobs = {} if not coordinator_name else {
            coordinator_name: [coordinator_address or tpu_addresses.COORDINATOR]}
        if tpu not in (None, '', 'local'):
            tpu_addresses.remember(tpu)
            announce(f'TPUClusterResolver({tpu!r}) finds ' + (
                'the workers of a job' if defaults.current().cluster.is_from_script
                else 'the emulated system: no TPU is asked'))

    @property
    def emulated_system(self) -> System:
        """Returns the system that a TPUEstimator with this resolver runs on."""
        return self._stated if self._stated.is_explicit else defaults.current().system

    @staticmethod
    def connect(tpu: str | None = None, zone: str | None = None, project: str | None = None
                ) -> TPUClusterResolver:
        """Returns a resolver; the emulated system needs no connection and no initialization."""
        return TPUClusterResolver(tpu, zone, project)

    def get_tpu_system_metadata(self) -> Any:
        """Returns the size of the emulated system, as a `TPUSystemMetadata`."""
        size = self.emulated_system.topology
        return tf.tpu.experimental.TPUSystemMetadata(
            num_cores=size.num_cores, num_hosts=size.num_hosts,
            num_of_cores_per_host=size.cores_per_host, topology=tpu_topology(size), devices=[])

    def master(self, task_type: str | None = None, task_id: int | None = None,
               rpc_layer: str | None = None) -> str:
        """Returns `''`: the system is in this process, or a session finds its workers."""
        return tpu_addresses.Master(self.stated_addresses)

    def get_job_name(self) -> str:
        """Returns the job of the hosts, as scripts write it into the names of devices."""
        chosen = defaults.current().cluster
        return HOST_JOB if chosen.is_used or chosen.is_from_script else super().get_job_name()

    def get_master(self) -> str:
        """Returns `''`, as `master()` does."""
        return self.master()

    def cluster_spec(self) -> tf.train.ClusterSpec:
        """Returns one task per emulated host, at unreachable addresses; none for `'local'`."""
        if not self._has_cluster:
            return tf.train.ClusterSpec({})
        return tpu_addresses.emulated_cluster(
            self.emulated_system.topology, self.get_job_name(), self._other_jobs)

    def num_accelerators(self, task_type: str | None = None, task_id: int | None = None,
                         config_proto: Any = None) -> dict[str, int]:
        """Returns the cores per host, as TensorFlow's resolver reports them."""
        return {'TPU': self.emulated_system.topology.cores_per_host}

    @property
    def environment(self) -> str:
        """`''`, as outside of Google."""
        return ''

    def __deepcopy__(self, memo: dict[int, Any]) -> TPUClusterResolver:
        """Returns the same resolver, because resolvers never change here."""
        return self


def devices_listed() -> dict[str, Callable[..., list[Any]]]:
    """Returns the functions of `tf.config` that list devices, with the emulated cores in them."""
    config = tf.config
    return {
        'list_logical_devices': _with_cores(
            config.list_logical_devices, config.LogicalDevice, '/device'),
        'list_physical_devices': _with_cores(
            config.list_physical_devices, config.PhysicalDevice, '/physical_device')}


def _with_cores(function: Any, device: Any, prefix: str) -> Callable[..., list[Any]]:
    """Returns a function that lists TensorFlow's devices, then one per emulated core."""
    original = inspect.unwrap(function)  # An earlier install() may have been here.

    @functools.wraps(original)
    def listed(device_type: str | None = None) -> list[Any]:
        found = original(device_type)
        if device_type not in (None, 'TPU'):
            return list(found)
        system = defaults.system_of(_last)
        return [*found, *[device(f'{prefix}:TPU:{core}', 'TPU')
                          for core in range(system.topology.num_cores)]]

    return listed
