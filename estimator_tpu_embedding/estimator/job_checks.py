"""Checks the arguments of a TPUEstimator: refuses impossible ones, warns of useless ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.names import directory_doubts
from ..errors import ConfigError, Problem, UnsupportedError, shown
from . import feed_hook
from .checks import check_positive
from .embedding_spec import EmbeddingConfigSpec
from .run_config import RunConfig
from .tpu_config import InputPipelineConfig, TPUConfig

_WITHOUT_CLUSTER = {
    'TF_CONFIG': 'Unset it', 'RunConfig.cluster': 'Give a TPUClusterResolver, or leave it out',
    'RunConfig.experimental_distribute': 'Leave remote_cluster out'}


def check_for_tpu(config: RunConfig, batch_sizes: Mapping[str, int | None],
                  spec: EmbeddingConfigSpec | None) -> None:
    """Makes the checks of the original that apply with `use_tpu`, in its order.

    Args:
      config: the RunConfig.
      batch_sizes: by the name of the argument; samples of all cores per step.
      spec: the embedding spec, or `None`.

    Raises:
      ValueError, TypeError: as the original does.
      UnsupportedError: for settings that this version does not run.
    """
    if batch_sizes['train_batch_size'] is None:
        raise ValueError('`train_batch_size` cannot be `None`')
    for name, value in batch_sizes.items():
        if value is not None:
            check_positive(value, name)
    tpu_config = config.tpu_config
    mode = tpu_config.per_host_input_for_training
    if mode == InputPipelineConfig.PER_SHARD_V1 and tpu_config.num_cores_per_replica:
        raise ValueError('Model parallelism only supports per host input for training. '
                         'Please adjust TPURunconfig.per_host_input_for_training.')
    if spec is not None and mode not in (InputPipelineConfig.PER_HOST_V1,
                                         InputPipelineConfig.PER_HOST_V2):
        raise ValueError('Only PER_HOST_V1 and PER_HOST_V2 is supported when using TPU '
                         f'Embedding; got {mode}.')
    refuse_unsupported(config)
    _warn_of_what_has_no_effect(tpu_config)


def refuse_unsupported(config: RunConfig) -> None:
    """Refuses, all at once, the settings of a job that this version does not run.

    Raises:
      UnsupportedError: if there are any.
    """
    tpu_config = config.tpu_config
    found: list[Problem] = []
    if tpu_config.experimental_feed_hook is not None:
        found += feed_hook.problems_of(tpu_config.experimental_feed_hook)
    if config.cluster_spec:
        found += [Problem('E907', where, 'a cluster of processes is for plain Estimators', remedy=(
            f'{_WITHOUT_CLUSTER.get(where, "Leave it out")}: hosts are emulated in one process, or '
            'they are workers: see etpe docs cluster.'))
            for where in config.clusters_named_by or ['RunConfig.cluster_spec']]
    if config.train_distribute or config.eval_distribute:
        found.append(Problem(
            'E914', 'RunConfig', 'a strategy is for a plain Estimator, or use_tpu='
            'False: the cores are the replicas', remedy='Leave it out.'))
    if found:
        raise UnsupportedError(*found)


def _warn_of_what_has_no_effect(config: TPUConfig) -> None:
    """Warns once per estimator of settings that change nothing here."""
    if config.num_shards == 1 and not config.num_cores_per_replica:
        tf.logging.warning(
            'Setting TPUConfig.num_shards==1 is an unsupported behavior. Please fix as soon as '
            'possible (leaving num_shards as None.)')
    for name, value, why in (
            ('input_partition_dims', config.input_partition_dims,
             'the cores of a replica share one memory here'),
            ('initial_infeed_sleep_secs', config.initial_infeed_sleep_secs or None,
             'no program is compiled that input would have to wait for')):
        if value is not None:
            tf.logging.warning('%s', Problem(
                'W462', 'TPUConfig', f'{name} has no effect: {why}', str(value)))


def check_directories(model_dir: str, spec: EmbeddingConfigSpec | None) -> None:
    """Refuses directories that this version does not write to.

    Raises:
      UnsupportedError: for a directory that is not on this machine.
      ConfigError: for a directory of profiles that may lead elsewhere than it seems.
    """
    profiles = spec.profile_data_directory if spec is not None else None
    for where, directory in (('model_dir', model_dir), ('profile_data_directory', profiles)):
        if isinstance(directory, str) and '://' in directory:
            raise UnsupportedError(Problem(
                'E913', where, 'it must be a local directory', directory,
                'Copy the results when the job has ended.'))
    doubts = list(directory_doubts(profiles)) if profiles else []
    if doubts:
        raise ConfigError(Problem(
            'E439', 'profile_data_directory', 'it must be the plain path of a directory',
            f'{", ".join(doubts)} in {shown(repr(profiles))}'))


def strategy_of(spec: Any) -> str:
    """Returns the partition strategy of an embedding spec, `'div'` if it is `None`.

    Raises:
      ConfigError: for a value that is no `EmbeddingConfigSpec`.
    """
    if spec is not None and not isinstance(spec, EmbeddingConfigSpec):
        raise ConfigError(Problem(
            'E499', 'TPUEstimator', 'embedding_config_spec must be an EmbeddingConfigSpec',
            type(spec).__name__, 'Give EmbeddingConfigSpec(feature_columns=columns, '
            'optimization_parameters=...).'))
    return spec.partition_strategy if spec is not None else 'div'
