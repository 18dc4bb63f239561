"""Finds the workers of loops that are written by hand, and opens the sessions of loops there.

A loop has no RunConfig: its workers are those of the process, or the addresses that it has for its
TPU. A session belongs to the workers if its graph has tables there, or if it is opened at a TPU.
"""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow.compat.v1 as tf

from .. import defaults
from ..cluster.cluster import Cluster, current
from ..core.specs import Topology
from ..errors import ConfigError
from ..hosts.placement import Placement
from ..runner.progress import announce
from . import addresses
from .workers import choice_of_script

# Weak: a collection of the graph cannot take its place, since a MetaGraph cannot hold clusters.
_of_graphs: weakref.WeakKeyDictionary[tf.Graph, tuple[Cluster, Placement]] = (
    weakref.WeakKeyDictionary())


def cluster_of(master: Any) -> Cluster | None:
    """Returns the cluster of a loop; `None` if its hosts are emulated in this process.

    Args:
      master: what the loop has for its TPU: an address, the `master()` of a resolver, or `None`.

    Raises:
      ConfigError: see `workers.choice_of_script`.
    """
    choice = choice_of_script(defaults.current().cluster, addresses.stated_in(master))
    return current(choice, announce) if choice.is_used else None


def require_hosts(cluster: Cluster | None, topology: Topology) -> None:
    """Raises ConfigError unless a system has one host per worker."""
    problem = cluster and cluster.choice.hosts_problem(topology.num_hosts)
    if problem:
        raise ConfigError(problem)


def remember(graph: tf.Graph, cluster: Cluster, placement: Placement) -> None:
    """Notes that a graph has tables on a cluster."""
    _of_graphs[graph] = cluster, placement


def device_of_replica(graph: tf.Graph, replica: int, count: int) -> str:
    """Returns the device of one of the replicas of a graph: the host of a core, or `''`.

    Replicas are cores only if there are as many.
    """
    _, placement = _of_graphs.get(graph, (None, None))
    if placement is None or placement.topology.num_cores != count:
        return ''
    return placement.core(replica)


def cluster_of_session(target: Any, graph: tf.Graph | None) -> Cluster | None:
    """Returns the cluster on which a session is to be opened, or `None`.

    Args:
      target: of the session.
      graph: of the session; `None` is the default graph.
    """
    if isinstance(target, addresses.Master) or addresses.is_of_tpu(target):
        return cluster_of(target)
    if target:
        return None
    found, _ = _of_graphs.get(tf.get_default_graph() if graph is None else graph, (None, None))
    return found
