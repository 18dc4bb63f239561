"""Functions that reach for a TPU, for resolvers of the emulated system, which is always ready."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from ..core.defaults import default_system
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
            (tf.config, 'config', 'experimental_connect_to_host',
             ('', f'grpc://{COLAB_ADDRESS}'), _nothing)):
        yield path, name, _for_emulated(getattr(namespace, name), also, emulated)


def _for_emulated(function: Any, also: tuple[str | None, ...], emulated: Callable[[Any], Any]
                  ) -> Callable[..., Any]:
    """What calls `emulated` for resolvers of this package and for `also`, else the original."""
    original = inspect.unwrap(function)  # An earlier install() may have been here.

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = next(iter((*args, *kwargs.values())), None)
        if isinstance(given, TPUClusterResolver) or given in also:
            return emulated(given)
        return original(*args, **kwargs)

    return call


def _initialized(resolver: Any) -> Any:
    """Frees the one place for a TPUEmbedding; gives the topology, as that of a TPU does."""
    forget_initialized()
    system = getattr(resolver, 'emulated_system', None) or default_system()
    return tpu_topology(system.topology)


def _shut_down(resolver: Any) -> None:
    """Frees the one place for a TPUEmbedding."""
    forget_initialized()


def _nothing(resolver: Any) -> None:
    """Nothing listens anywhere."""
