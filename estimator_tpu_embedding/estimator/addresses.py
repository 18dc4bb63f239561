"""Addresses of TPU systems that jobs name: all of them mean the emulated system, in this process.

Nothing is contacted. A session that is opened at such an address is one of this process, after
`install()`; and the addresses of the emulated hosts themselves lead nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.specs import Topology
from ..errors import shown
from ..runner.progress import announce

TPU_PORT = 8470
"""Where the hosts of a TPU listen."""

_DOMAIN = 'emulated-tpu.invalid'
"""RFC 6761 keeps `.invalid` for names that can never be resolved, by whatever server."""

COORDINATOR = f'coordinator.{_DOMAIN}:{TPU_PORT}'
"""The address of a job that is named without one."""

_LOCAL = (None, '', 'local')

_known: set[str] = set()


class EmulatedCluster(tf.train.ClusterSpec):
    """The hosts of an emulated system as tasks of a cluster, of which none is a process."""


class ClusterOfConfig(EmulatedCluster):
    """The same as the cluster of a RunConfig, where it must not seem to be there.

    The Estimator asks whether `config.cluster_spec` is true, and if so joins its processes.
    """

    def __bool__(self) -> bool:
        return False


def emulated_cluster(topology: Topology, job: str, others: Mapping[str, list[str]]
                     ) -> EmulatedCluster:
    """A cluster with one task per host.

    Args:
      topology: of the emulated system.
      job: the name of the job that has the hosts.
      others: addresses of other jobs by name.
    """
    hosts = [f'host-{host}.{_DOMAIN}:{TPU_PORT}' for host in range(topology.num_hosts)]
    return EmulatedCluster({job: hosts, **others})


def lead_here(where: str, **addresses: Any) -> None:
    """Remembers addresses of TPU systems, and says in one line that nobody asks them.

    Args:
      where: what was given them, as a class.
      **addresses: by argument a name or address, or a list of them; `None`, `''` and `'local'`
        are none.
    """
    given = {name: value for name, value in addresses.items() if value not in _LOCAL}
    if not given:
        return
    for value in given.values():
        remember(value)
    shown_ones = ', '.join(f'{name}={shown(repr(value))}' for name, value in given.items())
    announce(f'{where}({shown_ones}) means the emulated system: nothing is contacted')


def remember(value: Any) -> None:
    """Makes addresses known as those of TPUs: a string, as a flag has it, or a list of them."""
    _known.update(_addresses_in(value))


def is_of_tpu(target: Any) -> bool:
    """Whether a job has given the target of a session as the address of a TPU before."""
    return any(address in _known or address.rpartition(':')[0].endswith(f'.{_DOMAIN}')
               for address in _addresses_in(target))


def has_port_of_tpu(target: Any) -> bool:
    """Whether the target of a session seems to be the address of a TPU."""
    return any(address.endswith(f':{TPU_PORT}') for address in _addresses_in(target))


def _addresses_in(value: Any) -> Iterator[str]:
    """Yields each address without its protocol."""
    if isinstance(value, bytes):
        value = value.decode(errors='replace')
    if isinstance(value, str):
        for part in value.split(','):
            address = part.strip().rpartition('://')[2]
            if address:
                yield address
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _addresses_in(one)
