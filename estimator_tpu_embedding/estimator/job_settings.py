"""Checks the settings of a job, and translates them for the runner."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import defaults
from ..columns import embedding_columns
from ..columns.featurizer import Featurizer
from ..core.names import directory_doubts
from ..core.optimizers import shared_code_warnings
from ..core.plan import resolve
from ..core.specs import MAX_THREADS, FeatureSpec, Kernels, TableSpec, Topology
from ..core.vocabulary_digests import Words
from ..errors import ConfigError, Problem, UnsupportedError, did_you_mean, quoted, shown
from ..runner.job import Lookups
from ..runner.training import Cadence
from .embedding_spec import EmbeddingConfigSpec
from .tpu_config import (
    InputPipelineConfig,
    RunConfig,
    TPUConfig,
    check_positive,
    parse_iterations_per_loop,
)
from .tpu_estimator_names import TPUInfeedOutfeedSessionHook

_WITHOUT_CLUSTER = {
    'TF_CONFIG': 'Unset it', 'RunConfig.cluster': 'Give a TPUClusterResolver, or leave it out',
    'RunConfig.experimental_distribute': 'Leave remote_cluster out'}


def check_for_tpu(config: RunConfig, batch_sizes: Mapping[str, int | None],
                  spec: EmbeddingConfigSpec | None) -> None:
    """Makes the checks of the original that apply with `use_tpu`, in its order.

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
    if defaults.current().backend != 'tpu':
        _warn_of_what_has_no_effect(tpu_config)


def refuse_unsupported(config: RunConfig) -> None:
    """Refuses, all at once, the settings of a job that this version does not run.

    Raises:
      UnsupportedError: if there are any.
    """
    tpu_config = config.tpu_config
    found: list[Problem] = []
    if tpu_config.experimental_feed_hook is not None:
        found += _problems_of_hook(tpu_config.experimental_feed_hook)
    if config.cluster_spec and defaults.current().backend != 'tpu':
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


def _problems_of_hook(cls: Any) -> Iterator[Problem]:
    if not (isinstance(cls, type) and issubclass(cls, TPUInfeedOutfeedSessionHook)):
        yield Problem('E907', 'TPUConfig.experimental_feed_hook', 'it must be a subclass of '
                      'TPUInfeedOutfeedSessionHook, without which nothing would feed', repr(cls))
        return
    threads = ('_run_infeed', '_run_outfeed', '_create_infeed_controller')
    changed = [name for name in threads if hasattr(cls, name)]
    if changed:
        yield Problem(
            'E907', 'TPUConfig.experimental_feed_hook', 'the threads that feed are the '
            "runner's and cannot be replaced", f'{cls.__name__} defines {", ".join(changed)}',
            'Override methods of SessionRunHook instead; before_run may fetch '
            'self._dequeue_ops.')


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


def cadence(config: RunConfig) -> Cadence:
    """Returns how often a RunConfig wants saves, summaries, logs and host calls."""
    amount, unit = parse_iterations_per_loop(config.tpu_config.iterations_per_loop)
    is_timed = unit == 'seconds'
    every = config.tpu_config.experimental_host_call_every_n_steps
    check_positive(every, 'TPUConfig experimental_host_call_every_n_steps')
    return Cadence(
        steps_per_run=1 if is_timed else amount, secs_per_run=amount if is_timed else None,
        host_call_every=every,
        save_steps=config.save_checkpoints_steps,
        save_secs=config.save_checkpoints_secs, keep_max=config.keep_checkpoint_max,
        keep_every_n_hours=config.keep_checkpoint_every_n_hours,
        summary_steps=config.save_summary_steps, log_steps=config.log_step_count_steps,
        save_graph_def=config.checkpoint_save_graph_def)


def lookups(spec: EmbeddingConfigSpec, topology: Topology, batch_size: int, verb: str,
            id_policy: str | Mapping[str, str] | None) -> Lookups:
    """Returns the plan of a spec, and how its columns read features and name variables."""
    columns = spec.feature_columns or []
    dense = spec.tensor_core_feature_columns or []
    if weighted := [column.name for column in dense if column.is_categorical_column_weighted()]:
        raise UnsupportedError(*[Problem(
            'E901', f'column "{name}"', 'weights are not supported with '
            'embedding_lookup_device="tpu_tensor_core"', remedy='Leave one of them out.')
            for name in weighted])
    tables, features, on_tensor_core = declared_by(spec, id_policy)
    optimizer = None
    if verb == 'train' and spec.optimization_parameters is not None:
        optimizer = spec.optimization_parameters.to_optimizer()
    plan = resolve(tables, features, topology, batch_size=batch_size, optimizer=optimizer,
                   strategy=spec.partition_strategy,
                   pipelined=spec.pipeline_execution_with_tensor_core,
                   mode='training' if verb == 'train' else 'inference',
                   profile_directory=spec.profile_data_directory or '',
                   may_be_empty=bool(dense))
    for problem in shared_code_warnings(
            plan.rate(table.name) for table in plan.tables if plan.mode == 'training'):
        tf.logging.warning('%s', problem)

    def variable_names(graph: tf.Graph) -> dict[str, str]:
        if spec.feature_columns is None:
            return {table.name: table.name for table in plan.tables}
        return embedding_columns.variable_names(columns, graph)

    featurizer = Featurizer(columns, plan, list(zip(dense, on_tensor_core)),
                            may_lack_samples=verb == 'predict')
    return Lookups(plan=plan, featurize=featurizer, variable_names=variable_names,
                   gradient_multiplier=spec.experimental_gradient_multiplier_fn,
                   words=words_of(spec))


def words_of(spec: EmbeddingConfigSpec | None) -> list[Words]:
    """Returns the words that the columns of a spec map to ids."""
    if spec is None:
        return []
    return embedding_columns.words_of([*(spec.feature_columns or []),
                                       *(spec.tensor_core_feature_columns or [])])


def declared_by(spec: EmbeddingConfigSpec, id_policy: str | Mapping[str, str] | None
                ) -> tuple[list[TableSpec], list[FeatureSpec], list[FeatureSpec]]:
    """Returns the tables and features of the engine, and the features of the tensor core."""
    tables, declared = spec.to_specs()
    dense = embedding_columns.tensor_core_features(spec.tensor_core_feature_columns or [])
    every = _with_policy([*declared, *dense],
                         defaults.current().id_policy if id_policy is None else id_policy)
    return tables, every[:len(declared)], every[len(declared):]


def _with_policy(features: Sequence[FeatureSpec], policy: str | Mapping[str, str]
                 ) -> list[FeatureSpec]:
    if isinstance(policy, str):
        return [dataclasses.replace(feature, id_policy=policy) for feature in features]
    names = [feature.name for feature in features]
    unknown = sorted(set(policy) - set(names))
    if unknown:
        raise ConfigError(Problem('E438', 'RunConfig.id_policy', 'it must name features of the '
                                  f'embedding spec, which are {quoted(sorted(names))}',
                                  quoted(unknown), next(filter(
                                      None, (did_you_mean(name, names) for name in unknown)), '')))
    return [dataclasses.replace(feature, id_policy=policy.get(feature.name, 'error'))
            for feature in features]


def kernels_of(config: RunConfig, session_config: tf.ConfigProto) -> Kernels:
    """Returns the kernels of a job: its RunConfig's, then the process's, then its sessions'."""
    threads = min(session_config.intra_op_parallelism_threads, MAX_THREADS)
    asked = Kernels(config.kernels, config.kernel_threads, config.table_memory)
    return asked.or_else(defaults.current().kernels).or_else(
        Kernels(threads=threads if threads > 0 else None))


def without_arithmetic_optimizer(config: tf.ConfigProto) -> tf.ConfigProto:
    """Returns the session config without the optimization that copies whole tables at every step.

    Grappler's arithmetic optimizer turns a sparse read of a variable into a dense one. The
    returned config also asks for one pass of all optimizers, unless it states another number. So
    does the config of an Estimator that is given none.
    """
    merged = copy.deepcopy(config)
    rewrites = merged.graph_options.rewrite_options
    if not rewrites.meta_optimizer_iterations:
        rewrites.meta_optimizer_iterations = rewrites.ONE
    rewrites.arithmetic_optimization = rewrites.OFF
    return merged


def absolute(directory: str) -> str:
    """Returns a path that stays the same if input_fn changes the working directory."""
    return directory if '://' in directory else os.path.abspath(directory)
