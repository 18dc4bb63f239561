"""Runs TF1 TPU-embedding jobs on today's TensorFlow, on plain CPU hosts, with TPU semantics.

Importing this package imports nothing heavy and changes nothing. `install()` restores the
names that TensorFlow removed; the names below can also be imported from here directly. The
first use of one of them imports TensorFlow with Keras 2.
"""

import importlib
from typing import Any

from . import version

__version__ = version.VERSION

_HOMES = {
    'AdagradMomentumParameters': 'estimator.optimizer_parameters',
    'AdagradParameters': 'estimator.optimizer_parameters',
    'AdamParameters': 'estimator.optimizer_parameters',
    'CheckpointOptions': 'checkpoint.options',
    'ConfigError': 'errors',
    'CrossShardOptimizer': 'estimator.tf_tpu',
    'DeviceConfig': 'estimator.table_config',
    'EmbeddingConfigSpec': 'estimator.embedding_spec',
    'EteError': 'errors',
    'FeatureConfig': 'estimator.table_config',
    'FrequencyEstimatorParameters': 'estimator.optimizer_parameters',
    'FtrlParameters': 'estimator.optimizer_parameters',
    'IdRangeError': 'errors',
    'InputPipelineConfig': 'estimator.tpu_config',
    'MomentumParameters': 'estimator.optimizer_parameters',
    'ProximalAdagradParameters': 'estimator.optimizer_parameters',
    'ProximalYogiParameters': 'estimator.optimizer_parameters',
    'RMSPropParameters': 'estimator.optimizer_parameters',
    'RunConfig': 'estimator.tpu_config',
    'StochasticGradientDescentParameters': 'estimator.optimizer_parameters',
    'TPUClusterResolver': 'compat.resolver',
    'TPUConfig': 'estimator.tpu_config',
    'TPUContext': 'estimator.tpu_context',
    'TPUEmbedding': 'estimator.tpu_embedding',
    'TPUEstimator': 'estimator.tpu_estimator',
    'TPUEstimatorSpec': 'estimator.tpu_estimator_spec',
    'TableConfig': 'estimator.table_config',
    'TableMemory': 'core.table_memory',
    'UnreadableConfigError': 'errors',
    'UnsupportedError': 'errors',
    'cross_replica_sum': 'estimator.tf_tpu',
    'embedding_column': 'columns.embedding_columns',
    'install': 'compat.install',
    'shared_embedding_columns': 'columns.embedding_columns',
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    if home not in ('errors', 'checkpoint.options', 'compat.install', 'core.table_memory'):
        from .compat import environment
        environment.prepare()
    value = getattr(importlib.import_module(f'{__name__}.{home}'), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
