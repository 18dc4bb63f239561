"""`install()`: puts the names back that TensorFlow 2.16 removed."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

from . import environment


def install(hosts: int | None = None, cores: int | None = None) -> None:
    """Makes TF1 TPUEstimator scripts importable and sizes the emulated TPU system.

    Call it before TensorFlow is imported. It restores `tf.estimator` and
    `tf.compat.v1.estimator` with the TPU classes of this package in them, the optimizer
    parameters under `tf.compat.v1.tpu.experimental`, makes `TPUClusterResolver` find the
    emulated system, and gives `cross_replica_sum`, which has no CPU kernel, a meaning.
    Calling it again only changes the size.

    Args:
      hosts: emulated TPU hosts, >= 1.
      cores: cores per host, >= 1. With neither given the system has one core, or as many as
        the script's `TPUConfig(num_shards=...)` says.

    Raises:
      EnvironmentProblem: if TensorFlow was imported without the legacy-Keras switch, or a
        package is missing.
      ConfigError: if a number is out of range.
    """
    environment.use_legacy_keras()
    from ..estimator import system
    system.set_default_system(hosts, cores)
    for namespace, name, value in _restored():
        setattr(namespace, name, value)
    for alias, module in _module_aliases().items():
        sys.modules[alias] = module
    _emulate_cross_replica_sum()


def _restored() -> Iterator[tuple[Any, str, Any]]:
    """Yields the namespace, the name and the value of everything that is restored."""
    import tensorflow as tf

    from .. import _legacy
    from ..estimator import config, embedding_spec, parameters, spec
    from ..estimator.estimator import TPUEstimator
    from .resolver import TPUClusterResolver
    values = {name: getattr(face, name) for face in (config, embedding_spec, parameters, spec)
              for name in dir(face)}
    values['TPUEstimator'] = TPUEstimator
    estimator = _legacy.load()
    places = [(estimator.tpu, _legacy.TPU_NAMES),
              (estimator.tpu.experimental, ('EmbeddingConfigSpec',)),
              (tf.compat.v1.tpu.experimental, ('AdagradParameters',
                                               'StochasticGradientDescentParameters'))]
    places += [(sys.modules[path], names) for path, names in _legacy.STAND_INS.items()]
    for namespace, names in places:
        for name in names:
            yield namespace, name, values[name]
    for root in (tf, tf.compat.v1):
        yield root, 'estimator', estimator
        yield root.distribute.cluster_resolver, 'TPUClusterResolver', TPUClusterResolver


def _module_aliases() -> dict[str, types.ModuleType]:
    """Names under which `import ...` statements find the estimator module."""
    from .. import _legacy
    estimator = _legacy.load()
    return {'tensorflow.estimator': estimator, 'tensorflow.compat.v1.estimator': estimator}


def _emulate_cross_replica_sum() -> None:
    """Replaces the function that TensorFlow's own CrossShardOptimizer calls."""
    import tensorflow.compat.v1 as tf

    from .. import _tf
    from ..estimator.cross_shard import cross_replica_sum
    _tf.tpu_ops_module().cross_replica_sum = cross_replica_sum
    tf.tpu.cross_replica_sum = cross_replica_sum
