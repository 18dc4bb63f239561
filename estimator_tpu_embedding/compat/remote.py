"""Makes functions and sessions that connect to a TPU use the emulated system in this process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from .. import _tf, defaults
from ..cluster.server import Target
from ..errors import Problem, shown
from ..estimator import addresses, loop_hosts
from ..estimator.system import tpu_topology
from ..midlevel.replicas import forget_initialized
from .environment import COLAB_ADDRESS
from .resolver import TPUClusterResolver

_TPU = 'tpu.experimental'


def replaced() -> Iterator[tuple[str, str, Any]]:
    """Yields the path below `tf`, the name and the function of each."""
    for namespace, path, name, also, emulated in (
            (tf.tpu.experimental, _TPU, 'initialize_tpu_system', (None,), _initialized),
            (tf.tpu.experimental, _TPU, 'shutdown_tpu_system', (None,), _shut_down),
            (tf.config, 'config', 'experimental_connect_to_cluster', (), _nothing),
            (tf.config, 'config', 'experimental_connect_to_host', ('',), _nothing)):
        yield path, name, _for_emulated(getattr(namespace, name), also, emulated)


def _for_emulated(function: Any, also: tuple[str | None, ...], emulated: Callable[[Any], Any]
                  ) -> Callable[..., Any]:
    """Returns a function that calls `emulated` or the original.

    It calls `emulated` if the first argument means the emulated system or is one of `also`.
    """
    original = inspect.unwrap(function)  # An earlier install() may have been here.

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = next(iter((*args, *kwargs.values())), None)
        if _is_emulated(given) or given in also:
            return emulated(given)
        return original(*args, **kwargs)

    return call


def _is_emulated(given: Any) -> bool:
    """Whether an argument is a resolver of this package, its cluster or an address of a TPU."""
    return isinstance(given, (TPUClusterResolver, addresses.EmulatedCluster)) or (
        addresses.is_of_tpu(given))


def open_sessions_here() -> None:
    """Makes every session at the address of a TPU a session of this process, or of its workers.

    Sessions of graphs with tables on workers are opened there, too.
    """
    addresses.remember(COLAB_ADDRESS)
    cls = _tf.session_class()
    original = inspect.unwrap(cls.__init__)  # An earlier install() may have been here.

    @functools.wraps(original)
    def start(self: Any, target: Any = '', graph: Any = None, config: Any = None) -> None:
        _tf.mark_unopened(self)
        cluster = None
        if isinstance(target, Target):
            pass  # At a worker, which is no TPU.
        elif (cluster := loop_hosts.cluster_of_session(target, graph)) is not None:
            loop_hosts.prepare(cluster, graph)
            target = cluster.target
            config = cluster.config(tf.compat.v1.ConfigProto() if config is None else config)
        elif addresses.is_of_tpu(target):
            target = ''
        elif addresses.has_port_of_tpu(target):
            tf.compat.v1.logging.warning('%s', Problem(
                'W930', 'tf.Session', 'TPUs are emulated in this process, but the session asks the '
                'address that it was given', shown(repr(target)),
                'Open it at the master() of a TPUClusterResolver, or at "".'))
        original(self, target, graph, config)
        if cluster is not None:
            cluster.guard(self)

    cls.__init__ = start


def _initialized(resolver: Any) -> Any:
    """Permits another TPUEmbedding, and returns the topology, as a TPU does."""
    forget_initialized()
    return tpu_topology(defaults.system_of(resolver).topology)


def _shut_down(resolver: Any) -> None:
    """Permits another TPUEmbedding."""
    forget_initialized()


def _nothing(resolver: Any) -> None:
    """Does nothing, because no process listens."""
