"""Says what the TPU addresses of a script mean: the emulated system, or the workers of a job.

The emulated system is in this process: nothing is contacted. After `install()`, a session at such
an address is opened here. The emulated hosts have addresses too, for scripts that print them;
nothing answers there.

The workers of a job are those of its RunConfig, of the process, or the addresses of the script. A
loop that is written by hand has no RunConfig. A session belongs to the workers if its graph has
tables there, or if it is opened at a TPU.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import defaults
from ..cluster import addresses as of_workers
from ..cluster.cluster import Cluster, current
from ..cluster.worker_choice import ClusterChoice
from ..core.plan import Plan
from ..core.specs import Topology
from ..errors import ConfigError, Problem, shown
from ..hosts.placement import Placement
from ..runner.progress import announce
from ..runner.run_sessions import parts_on

TPU_PORT = 8470
"""Where the hosts of a TPU listen."""

_DOMAIN = 'emulated-tpu.invalid'
"""RFC 6761 keeps `.invalid` for names that can never be resolved, by whatever server."""

COORDINATOR = f'coordinator.{_DOMAIN}:{TPU_PORT}'
"""The address of a job that is named without one."""

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
    """Returns a cluster with one task per host in `job`, and `others` by job."""
    hosts = [f'host-{host}.{_DOMAIN}:{TPU_PORT}' for host in range(topology.num_hosts)]
    return EmulatedCluster({job: hosts, **others})


def announce_addresses(where: str, **addresses: Any) -> None:
    """Remembers the TPU addresses that a class was given by argument, and announces what they mean.

    `None`, `''` and `'local'` are ignored.
    """
    given = {name: value for name, value in addresses.items()
             if value not in (None, '', 'local')}
    if not given:
        return
    for value in given.values():
        remember(value)
    shown_ones = ', '.join(f'{name}={shown(repr(value))}' for name, value in given.items())
    announce(f'{where}({shown_ones}) means ' + (
        'the workers of a job' if defaults.current().cluster.is_from_script
        else 'the emulated system: nothing is contacted'))


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


class _Hosts(NamedTuple):
    """The workers that have the tables of a graph, and the plans of all these tables."""

    cluster: Cluster
    placement: Placement
    plans: list[Plan]


# Weak: a collection of the graph cannot take its place, since a MetaGraph cannot hold clusters.
_of_graphs: weakref.WeakKeyDictionary[tf.Graph, _Hosts] = weakref.WeakKeyDictionary()


def choice_of(config: Any) -> ClusterChoice:
    """Returns the processes that are the hosts of the job of a RunConfig."""
    own, general = config.workers, defaults.current().cluster
    choice = dataclasses.replace(own if own.is_used or own.is_from_script else general,
                                 expose=general.expose, worker_deadline=own.worker_deadline,
                                 step_deadline=own.step_deadline)
    of_resolver = getattr(config.cluster, 'stated_addresses', ())
    return _with_script(choice, of_resolver or of_workers.split(config.stated_master))


def _with_script(choice: ClusterChoice, given: Sequence[str]) -> ClusterChoice:
    """Returns a choice with the addresses in it that a script has for its TPU, if it asks so.

    Raises:
      ConfigError: E713 without addresses; others with every problem of them.
    """
    if not choice.is_from_script:
        return choice
    if not given or any(of_workers.parsed(one) is None for one in given):
        raise ConfigError(Problem(
            'E713', 'cluster', 'the script must give its TPU as addresses, if they are asked for',
            shown(", ".join(given)) or 'none',
            'Give the addresses themselves: etpe run --workers 10.0.0.3:8470,10.0.0.4:8470.'))
    choice = dataclasses.replace(choice, workers=tuple(given), is_from_script=False)
    if problems := list(choice.problems()):
        raise ConfigError(*problems)
    return choice


def cluster_of(config: Any) -> Cluster | None:
    """Returns the cluster of a job; `None` if its hosts are emulated in this process."""
    choice = choice_of(config)
    return current(choice, announce) if choice.is_used else None


def cluster_of_loop(master: Any) -> Cluster | None:
    """Returns the cluster of a loop; `None` if its hosts are emulated in this process.

    `master` is an address, the `master()` of a resolver, or `None`.
    """
    stated = master.stated if isinstance(master, Master) else tuple(_addresses_in(master))
    choice = _with_script(defaults.current().cluster, stated)
    return current(choice, announce) if choice.is_used else None


def place_tables(graph: tf.Graph, cluster: Cluster, placement: Placement, plan: Plan) -> None:
    """Notes that a graph has the tables of a plan on a cluster."""
    _of_graphs.setdefault(graph, _Hosts(cluster, placement, [])).plans.append(plan)


def device_of_replica(graph: tf.Graph, replica: int, count: int) -> str:
    """Returns the device of one of the replicas of a graph: the host of a core, or `''`.

    Replicas are cores only if there are as many.
    """
    hosts = _of_graphs.get(graph)
    if hosts is None or hosts.placement.topology.num_cores != count:
        return ''
    return hosts.placement.core(replica)


def cluster_of_session(target: Any, graph: tf.Graph | None) -> Cluster | None:
    """Returns the cluster on which a session is to be opened, if any, and prepares it.

    Its workers are there then, and have memory for the tables of the graph. Without a graph it is
    the default graph's.

    Raises:
      The errors of `Cluster.prepare` and `Cluster.require_resources`.
    """
    hosts = _of_graphs.get(tf.get_default_graph() if graph is None else graph)
    if isinstance(target, Master) or is_of_tpu(target):
        cluster = cluster_of_loop(target)
    else:
        cluster = None if target or hosts is None else hosts.cluster
    if cluster is not None:
        cluster.prepare()
        if hosts is not None:
            memory = defaults.current().kernels.memory
            cluster.require_resources(
                [[part for plan in hosts.plans for part in parts_on(plan, host)]
                 for host in range(cluster.num_hosts)],
                resident=None if memory is None else memory.bytes)
    return cluster
