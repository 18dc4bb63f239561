"""Says on which device of a cluster each part of a job is.

A job in one process has no device strings at all. A job on a cluster has a client and one task per
host. The client has input, the global step, host calls and summaries. A host has its shards and
the towers of its cores, and its own input if the job wants that. The variables of the model are on
host 0.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from ..core.specs import Topology

CLIENT_JOB = 'coordinator'
HOST_JOB = 'tpu_worker'


def device_of(job: str, task: int) -> str:
    """Returns the device of a task, as TensorFlow spells it.

    >>> device_of(HOST_JOB, 1)
    '/job:tpu_worker/replica:0/task:1/device:CPU:0'
    """
    return f'/job:{job}/replica:0/task:{task}/device:CPU:0'


def worker_at(device: str, addresses: Sequence[str]) -> str:
    """Names the worker on a device, for messages; `''` for any other device.

    >>> worker_at(device_of(HOST_JOB, 1), ['10.0.0.3:8470', '10.0.0.4:8470'])
    'worker 10.0.0.4:8470 of host 1'
    """
    found = re.match(rf'/job:{HOST_JOB}/replica:0/task:(\d+)(/|$)', device)
    return '' if found is None else f'worker {addresses[int(found[1])]} of host {found[1]}'


def on(device: str) -> contextlib.AbstractContextManager[object]:
    """Returns a context whose operations are on a device; `''` changes nothing."""
    return tf.device(device) if device else contextlib.nullcontext()


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """The devices of a job.

    Attributes:
      is_remote: whether each host is a task of a cluster; otherwise all are in this process.
      has_input_on_hosts: whether each host has its own input; otherwise the client has all.

    >>> cluster = Placement(Topology(num_hosts=2, cores_per_host=4), is_remote=True)
    >>> cluster.core(5)
    '/job:tpu_worker/replica:0/task:1/device:CPU:0'
    >>> Placement(Topology(num_hosts=2, cores_per_host=4)).core(5)
    ''
    """

    topology: Topology
    is_remote: bool = False
    has_input_on_hosts: bool = False

    @property
    def client(self) -> str:
        """The device of the global step and everything that is Python."""
        return device_of(CLIENT_JOB, 0) if self.is_remote else ''

    def input(self, host: int) -> str:
        """Returns the device on which a host's calls of input_fn build."""
        return self.host(host) if self.has_input_on_hosts else self.client

    def host(self, host: int) -> str:
        """Returns the device of the shards of a host."""
        return device_of(HOST_JOB, host) if self.is_remote else ''

    def core(self, core: int) -> str:
        """Returns the device of the tower of a core: its host."""
        return self.host(core // self.topology.cores_per_host)
