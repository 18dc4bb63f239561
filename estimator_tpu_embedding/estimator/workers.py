"""Finds the workers of a job: those of its RunConfig, of the process, or of its script.

A loop that is written by hand has no RunConfig: its workers are those of the process, or the
addresses that it has for its TPU. A session belongs to the workers if its graph has tables there,
or if it is opened at a TPU.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import defaults
from ..cluster import addresses as of_workers
from ..cluster.choice import ClusterChoice
from ..cluster.cluster import Cluster, current
from ..core.plan import Plan
from ..core.specs import Topology
from ..errors import ConfigError, Problem, shown
from ..hosts.placement import Placement
from ..runner.progress import announce
from ..runner.run_sessions import parts_on
from . import addresses


class _Hosts(NamedTuple):
    """Where the tables of a graph are.

    Attributes:
      cluster: the workers.
      placement: the devices of cores and hosts.
      plans: of all tables.
    """

    cluster: Cluster
    placement: Placement
    plans: list[Plan]


# Weak: a collection of the graph cannot take its place, since a MetaGraph cannot hold clusters.
_of_graphs: weakref.WeakKeyDictionary[tf.Graph, _Hosts] = weakref.WeakKeyDictionary()


def choice_of(config: Any) -> ClusterChoice:
    """Returns the processes that are the hosts of a job.

    Args:
      config: its RunConfig.

    Raises:
      ConfigError: E713 if the addresses of the script are asked for, and it has none; others with
        every problem of its addresses.
    """
    own, general = config.workers, defaults.current().cluster
    choice = dataclasses.replace(own if own.is_used or own.is_from_script else general,
                                 expose=general.expose, worker_deadline=own.worker_deadline,
                                 step_deadline=own.step_deadline)
    return choice_of_script(choice, _addresses_of_script(config))


def choice_of_script(choice: ClusterChoice, given: Sequence[str]) -> ClusterChoice:
    """Returns a choice with the addresses of a script in it, if it asks for them.

    Args:
      choice: the processes that are meant.
      given: the addresses that the script has for its TPU.

    Raises:
      ConfigError: see `choice_of`.
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
    """Returns the cluster of a job; `None` if its hosts are emulated in this process.

    Raises:
      ConfigError: see `choice_of`.
    """
    choice = choice_of(config)
    return current(choice, announce) if choice.is_used else None


def _addresses_of_script(config: Any) -> tuple[str, ...]:
    """Returns the addresses that a script has for its TPU; its resolver comes first."""
    of_resolver = getattr(config.cluster, 'stated_addresses', ())
    return tuple(of_resolver or of_workers.split(config.stated_master))


def cluster_of_loop(master: Any) -> Cluster | None:
    """Returns the cluster of a loop; `None` if its hosts are emulated in this process.

    Args:
      master: what the loop has for its TPU: an address, the `master()` of a resolver, or `None`.

    Raises:
      ConfigError: see `choice_of`.
    """
    choice = choice_of_script(defaults.current().cluster, addresses.stated_in(master))
    return current(choice, announce) if choice.is_used else None


def require_hosts(cluster: Cluster | None, topology: Topology) -> None:
    """Raises ConfigError unless a system has one host per worker."""
    problem = cluster and cluster.choice.hosts_problem(topology.num_hosts)
    if problem:
        raise ConfigError(problem)


def remember(graph: tf.Graph, cluster: Cluster, placement: Placement, plan: Plan) -> None:
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
    """Returns the cluster on which a session is to be opened, or `None`.

    Args:
      target: of the session.
      graph: of the session; `None` is the default graph.
    """
    if isinstance(target, addresses.Master) or addresses.is_of_tpu(target):
        return cluster_of_loop(target)
    if target:
        return None
    hosts = _of_graphs.get(tf.get_default_graph() if graph is None else graph)
    return None if hosts is None else hosts.cluster


def prepare(cluster: Cluster, graph: tf.Graph | None) -> None:
    """Makes sure that workers are there for a session, and have memory for the tables of a graph.

    Args:
      cluster: the workers.
      graph: see `cluster_of_session`.

    Raises:
      The errors of `Cluster.prepare` and `Cluster.admit`.
    """
    cluster.prepare()
    hosts = _of_graphs.get(tf.get_default_graph() if graph is None else graph)
    if hosts is not None:
        cluster.admit([[part for plan in hosts.plans for part in parts_on(plan, host)]
                       for host in range(cluster.num_hosts)], '', '')
