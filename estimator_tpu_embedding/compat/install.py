"""`install()`: puts the names back that TensorFlow 2.16 removed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from . import environment


def install(hosts: int | None = None, cores: int | None = None, ids: str | None = None) -> None:
    """Makes TF1 TPUEstimator scripts importable and sizes the emulated TPU system.

    Call it before TensorFlow is imported. It restores `tf.estimator` and
    `tf.compat.v1.estimator` with the TPU classes of this package in them, the optimizer
    parameters under `tf.compat.v1.tpu.experimental`, makes `TPUClusterResolver` find the
    emulated system, gives what has no CPU kernel a meaning (`cross_replica_sum`, `shard`,
    `replicate`, `batch_parallel`, `rewrite`, `initialize_system`, `shutdown_system` of
    `tf.compat.v1.tpu`), and restores `tensorflow.python.tpu.tpu_embedding` and
    `tpu_embedding_gradient`. Calling it again only changes the size.

    Args:
      hosts: emulated TPU hosts, >= 1.
      cores: cores per host, >= 1. With neither given the system has one core, or as many as
        the script's `TPUConfig(num_shards=...)` says.
      ids: what becomes of ids outside of their vocabulary where a `RunConfig` does not say it:
        `'error'`, `'drop'`, `'clip'` or `'mod'`; `'error'` if `None`.

    Raises:
      SetupError: if TensorFlow was imported without the legacy-Keras switch, or a
        package is missing.
      ConfigError: if a number is out of range, or for an unknown policy.
    """
    environment.check_packages()
    environment.use_legacy_keras()
    from ..estimator import system
    system.set_default_system(hosts, cores)
    system.set_default_id_policy(ids)
    for namespace, name, value in _restored():
        setattr(namespace, name, value)
    _emulate_tpu_functions()


def _restored() -> Iterator[tuple[Any, str, Any]]:
    """Yields the namespace, the name and the value of everything that is restored."""
    import tensorflow as tf

    from .. import _legacy
    from ..estimator import parameters
    from ..estimator.config import (
        ExportSavedModelApiVersion, InputPipelineConfig, RunConfig, TPUConfig)
    from ..estimator.context import TPUContext
    from ..estimator.embedding_spec import EmbeddingConfigSpec
    from ..estimator.estimator import TPUEstimator
    from ..estimator.export import BatchConfig, export_estimator_savedmodel
    from ..estimator.spec import TPUEstimatorSpec
    from . import modules
    from .resolver import TPUClusterResolver
    estimator = _legacy.load()
    optimizers = (parameters.AdagradParameters, parameters.AdamParameters,
                  parameters.FtrlParameters, parameters.StochasticGradientDescentParameters)
    ours: dict[str, Any] = {one.__name__: one for one in (
        *optimizers, BatchConfig, EmbeddingConfigSpec, ExportSavedModelApiVersion,
        InputPipelineConfig, RunConfig, TPUConfig, TPUContext, TPUEstimator, TPUEstimatorSpec,
        export_estimator_savedmodel)}
    places = [estimator.tpu, estimator.tpu.experimental,
              *[sys.modules[path] for path in _legacy.STAND_INS]]
    for namespace in places:
        for name in ours.keys() & vars(namespace).keys():
            yield namespace, name, ours[name]
    for cls in optimizers:
        yield tf.compat.v1.tpu.experimental, cls.__name__, cls
    for root in (tf, tf.compat.v1, tf.compat.v2, tf.compat.v2.compat.v1):
        yield root, 'estimator', estimator
        yield root.distribute.cluster_resolver, 'TPUClusterResolver', TPUClusterResolver
    for path, module in modules.deleted_modules().items():
        sys.modules[path] = module
        package, _, name = path.rpartition('.')
        yield sys.modules[package], name, module
    for path in ('tensorflow.estimator', 'tensorflow.compat.v1.estimator'):
        sys.modules[path] = estimator  # For statements such as `import tensorflow.estimator`.


def _emulate_tpu_functions() -> None:
    """Replaces functions that need the ops of a TPU, for all who call them by whatever road."""
    import tensorflow.compat.v1 as tf

    from .. import _tf
    from ..estimator import replicate
    from ..estimator.cross_shard import cross_replica_sum
    _tf.tpu_ops_module().cross_replica_sum = cross_replica_sum
    tf.tpu.cross_replica_sum = cross_replica_sum
    module = _tf.tpu_module()
    module.split_compile_and_replicate = replicate.split_compile_and_replicate
    for function in (replicate.initialize_system, replicate.shutdown_system):
        for namespace in (module, tf.tpu):
            setattr(namespace, function.__name__, function)
