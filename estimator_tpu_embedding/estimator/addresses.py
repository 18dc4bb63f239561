"""Remembers the TPU addresses that jobs name, all of which mean the emulated system.

Nothing is contacted. After `install()`, a session at such an address is opened in this process.
The emulated hosts have addresses too, for scripts that print them; nothing answers there.
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


class Master(str):
    """The `master()` of a resolver: an empty string which a session knows to be of a TPU.

    Attributes:
      stated: the addresses that the script gave the resolver.
    """

    stated: tuple[str, ...]

    def __new__(cls, stated: tuple[str, ...] = ()) -> Master:
        """Returns one for a resolver with these addresses."""
        made = super().__new__(cls)
        made.stated = stated
        return made


class EmulatedCluster(tf.train.ClusterSpec):
    """The hosts of an emulated system as tasks of a cluster; no task is a process."""


class ClusterOfConfig(EmulatedCluster):
    """An emulated cluster in a RunConfig; its truth value is false.

    An Estimator would join the processes of a `config.cluster_spec` whose truth value is true.
    """

    def __bool__(self) -> bool:
        return False


def emulated_cluster(topology: Topology, job: str, others: Mapping[str, list[str]]
                     ) -> EmulatedCluster:
    """Returns a cluster with one task per host.

    Args:
      topology: the size of the emulated system.
      job: the name of the job that has the hosts.
      others: addresses of other jobs by name.
    """
    hosts = [f'host-{host}.{_DOMAIN}:{TPU_PORT}' for host in range(topology.num_hosts)]
    return EmulatedCluster({job: hosts, **others})


EMULATED = 'the emulated system: nothing is contacted'
"""The meaning of an address, unless its owner says otherwise."""


def lead_here(where: str, meaning: str = EMULATED, **addresses: Any) -> None:
    """Remembers addresses of TPU systems, and announces what they mean.

    Args:
      where: the class that was given the addresses, for the announcement.
      meaning: of the addresses, for the announcement.
      **addresses: a name, an address, or a list of them, by argument. `None`, `''` and `'local'`
        are ignored.
    """
    given = {name: value for name, value in addresses.items() if value not in _LOCAL}
    if not given:
        return
    for value in given.values():
        remember(value)
    shown_ones = ', '.join(f'{name}={shown(repr(value))}' for name, value in given.items())
    announce(f'{where}({shown_ones}) means {meaning}')


def remember(value: Any) -> None:
    """Remembers TPU addresses: one string, as a flag has it, or a list of strings."""
    _known.update(_addresses_in(value))


def is_of_tpu(target: Any) -> bool:
    """Returns whether a job named this target of a session as a TPU address before."""
    return any(address in _known or address.rpartition(':')[0].endswith(f'.{_DOMAIN}')
               for address in _addresses_in(target))


def has_port_of_tpu(target: Any) -> bool:
    """Returns whether the target of a session has the port of a TPU."""
    return any(address.endswith(f':{TPU_PORT}') for address in _addresses_in(target))


def stated_in(master: Any) -> tuple[str, ...]:
    """Returns the addresses that a script means by the target of a session, in their order."""
    return master.stated if isinstance(master, Master) else tuple(_addresses_in(master))


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
