"""Holds the settings of a job for its run, `RunConfig`, and for its TPU system, `TPUConfig`.

The checks have the errors of the original.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf, defaults
from ..checkpoint.options import CheckpointOptions
from ..cluster.worker_choice import ClusterChoice
from ..core.specs import Kernels
from ..core.table_memory import TableMemory
from ..errors import ConfigError, Problem
from .tpu_addresses import ClusterOfConfig, EmulatedCluster, announce_addresses

_PlainRunConfig: Any = _legacy.load().RunConfig
_util = _legacy.module('tpu.util')
check_positive = _util.check_positive_integer
parse_iterations_per_loop = _util.parse_iterations_per_loop


class ExportSavedModelApiVersion(enum.Enum):
    """The party that rewrites a model for the TPU graph of an export: V1 is the TPUEstimator."""

    V1 = 1
    V2 = 2


class InputPipelineConfig:
    """The ways in which input reaches the cores; the values are ints, as in the original.

    Attributes:
      PER_SHARD_V1: 1, `input_fn` is called once per core.
      PER_HOST_V1: 2, `input_fn` is called once per host, and its batches are cut among the cores.
      PER_HOST_V2: 3, `input_fn` is called once per host, and its cores take turns.
      BROADCAST: 4, `input_fn` is called once, and every core gets the same samples.
      SLICED: 5, `input_fn` is called once, and its batches are cut among all cores.

    >>> TPUConfig(per_host_input_for_training=True).per_host_input_for_training
    2
    >>> TPUConfig(per_host_input_for_training=False).per_host_input_for_training
    1
    """

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class _TPUConfigFields(NamedTuple):
    iterations_per_loop: int | str
    num_shards: int | None
    num_cores_per_replica: int | None
    per_host_input_for_training: int
    tpu_job_name: str | None
    initial_infeed_sleep_secs: int | None
    input_partition_dims: Sequence[Any] | None
    eval_training_input_configuration: int
    experimental_host_call_every_n_steps: int
    experimental_allow_per_host_v2_parallel_get_next: bool
    experimental_feed_hook: Any


class TPUConfig(_TPUConfigFields):
    """The part of a `RunConfig` that describes the TPU system.

    Attributes:
      iterations_per_loop: the steps of one `session.run`: a positive int or digit string, or a
        time such as `'30s'`, `'5m'`, `'1h'`.
      num_shards: the number of replicas, checked against the system. `None` takes the system's.
        Where nobody asked for a size of the emulated system, `num_shards` sets that size.
      per_host_input_for_training: one of `InputPipelineConfig`; `True` is `PER_HOST_V1` and
        `False` is `PER_SHARD_V1`.
      tpu_job_name: the name in `TF_CONFIG['service']['tpu_worker_job_name']` if `None`. It has no
        effect here, where there are no jobs.

    The other fields have the meanings, defaults and checks of the original.

    Raises:
      ValueError, TypeError: as the original does.

    >>> TPUConfig(iterations_per_loop='5m', num_shards=8).num_shards
    8
    >>> TPUConfig(num_shards=0)
    Traceback (most recent call last):
    ValueError: TPUConfig num_shards must be positive, got 0
    """

    __slots__ = ()

    def __new__(cls, iterations_per_loop: int | str = 2, num_shards: int | None = None,
                num_cores_per_replica: int | None = None,
                per_host_input_for_training: int | bool = True,
                tpu_job_name: str | None = None, initial_infeed_sleep_secs: int | None = None,
                input_partition_dims: Sequence[Any] | None = None,
                eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
                experimental_host_call_every_n_steps: int = 1,
                experimental_allow_per_host_v2_parallel_get_next: bool = False,
                experimental_feed_hook: Any = None) -> TPUConfig:
        """Checks and stores the arguments."""
        parse_iterations_per_loop(iterations_per_loop)
        if num_shards is not None:
            check_positive(num_shards, 'TPUConfig num_shards')
        if input_partition_dims is not None:
            if not isinstance(input_partition_dims, (list, tuple)) or (
                    len(input_partition_dims) not in (1, 2)):
                raise ValueError(
                    'input_partition_dims must be a list/tuple with one or two elements.')
            if per_host_input_for_training != InputPipelineConfig.PER_HOST_V2:
                raise ValueError('input_partition_dims is only supported in PER_HOST_V2 mode.')
            if num_cores_per_replica is None:
                raise ValueError('input_partition_dims requires setting num_cores_per_replica.')
        if num_cores_per_replica not in (None, 1, 2, 4, 8, 16, 32, 64, 128):
            raise ValueError('num_cores_per_replica must be 1, 2, 4, 8, 16, 32, 64, 128; got '
                             f'{num_cores_per_replica}')
        if eval_training_input_configuration not in (InputPipelineConfig.PER_HOST_V1,
                                                     InputPipelineConfig.SLICED):
            raise ValueError('eval_training_input_configuration must be PER_HOST_V1 or SLICED; '
                             f'got {eval_training_input_configuration}')
        if isinstance(per_host_input_for_training, bool):
            per_host_input_for_training = (
                InputPipelineConfig.PER_HOST_V1 if per_host_input_for_training
                else InputPipelineConfig.PER_SHARD_V1)
        if initial_infeed_sleep_secs:
            check_positive(initial_infeed_sleep_secs, 'TPUConfig initial_infeed_sleep_secs')
        return super().__new__(
            cls, iterations_per_loop, num_shards, num_cores_per_replica,
            per_host_input_for_training, tpu_job_name or _job_name_of_tf_config(),
            initial_infeed_sleep_secs, input_partition_dims, eval_training_input_configuration,
            experimental_host_call_every_n_steps,
            experimental_allow_per_host_v2_parallel_get_next, experimental_feed_hook)


def _job_name_of_tf_config() -> str | None:
    try:
        with _tf.without_deprecation_warnings():
            service = _legacy.load().RunConfig().service or {}
    except ValueError:  # The RunConfig of the job will say it.
        return None
    name: str | None = service.get('tpu_worker_job_name')
    return name


def check_partitioned_input(dims: Any, cores: int, features: Any, labels: Any) -> None:
    """Raises ValueError unless `input_partition_dims` fit the `tf.TypeSpec`s that input_fn gives.

    `dims` is `[dims of features]` or `[dims of features, dims of labels]`: for each tensor that is
    not looked up, in the structure of the tensors, its parts per dimension, or `None`.
    """
    for number, (name, value) in enumerate((('feature', features), ('label', labels))):
        if value is None or number == len(dims) or number and dims[number] is None:
            continue
        where, given = f'TPUConfig.input_partition_dims[{number}] mismatched', dims[number]
        expected, got = (sorted(each) if isinstance(each, Mapping) else []
                         for each in (value, given))
        if expected != got:
            raise ValueError(f'{where} {name} keys. Expected {expected}, got {got}')
        for spec, parts in _matched(value, given, f'{where} the structure of {name}s.'):
            _check_parts(spec, parts, cores)


def _matched(value: Any, dims: Any, problem: str) -> Iterator[tuple[Any, Any]]:
    """Yields each tensor of a structure with its part of `dims`. A list is no structure."""
    if isinstance(value, Mapping):
        keys = sorted(value)
        if not isinstance(dims, Mapping) or sorted(dims) != keys:
            raise ValueError(f'{problem} Expected the keys {keys}, got {dims}')
        for key in keys:
            yield from _matched(value[key], dims[key], problem)
    elif isinstance(value, tuple):
        if not isinstance(dims, tuple) or len(dims) != len(value):
            raise ValueError(f'{problem} Expected a tuple of {len(value)}, got {dims}')
        for each in zip(value, dims):
            yield from _matched(*each, problem)
    else:
        yield value, dims


def _check_parts(spec: Any, dims: Any, cores: int) -> None:
    if dims is None:
        return
    if not isinstance(dims, (list, tuple)) or not all(
            isinstance(parts, int) and parts >= 1 for parts in dims):
        raise ValueError(f'All input partition dims must be >= 1. Got {dims}.')
    if math.prod(dims) not in (1, cores):
        raise ValueError('The product of each input partition dim should equal to '
                         f'num_cores_per_replica. (dim = {dims}, num_cores_per_replica = {cores})')
    shape = getattr(spec, 'shape', None)
    if math.prod(dims) > 1 and (shape is None or shape.rank != len(dims)):
        raise ValueError(
            'Input partition dims must have the same number of dimensions as the `Tensor` to be '
            f'partitioned. (tensor shape = {shape}, input partition dims = {dims}).')


class RunConfig(_PlainRunConfig):
    """`tf.estimator.RunConfig`, with the settings that a TPUEstimator needs besides.

    Attributes:
      clusters_named_by: the settings that name a cluster of processes: `'TF_CONFIG'`, or an
        argument.
      stated_master: the `master` as the script stated it, before it meant the emulated system.
      workers: the processes that this config names as hosts, and how long they may be away.

    The other attributes are the arguments.

    >>> from estimator_tpu_embedding import CheckpointOptions
    >>> config = RunConfig(TPUConfig(iterations_per_loop=100), id_policy='drop',
    ...                    checkpoint=CheckpointOptions(verify='size'), keep_checkpoint_max=2)
    >>> config.tpu_config.iterations_per_loop, config.id_policy, config.keep_checkpoint_max
    (100, 'drop', 2)
    >>> config.replace(keep_checkpoint_max=7).id_policy
    'drop'
    """

    def __init__(self, tpu_config: TPUConfig | None = None, evaluation_master: str | None = None,
                 master: str | None = None, cluster: Any = None, *,
                 input_deadline_secs: float = 600.0,
                 id_policy: str | Mapping[str, str] | None = None,
                 nonfinite_gradients: str = 'error', shutdown_deadline_secs: float = 60.0,
                 checkpoint: CheckpointOptions | None = None, kernels: str = 'auto',
                 kernel_threads: int | None = None,
                 workers: str | Sequence[str] | None = None,
                 worker_deadline_secs: float = 120.0,
                 step_deadline_secs: float | None = None, input_on_workers: bool | None = None,
                 backend: str | None = None, table_memory: TableMemory | None = None,
                 **kwargs: Any):
        """Stores the arguments; `kwargs` go to `tf.estimator.RunConfig`.

        Sessions leave a graph of more than 20,000 nodes as it is: Grappler's time and memory grow
        faster than the graph. Of a smaller graph they leave out its optimizers of layouts, memory
        and functions. Set any option of `rewrite_options` in `session_config`, such as
        `dependency_optimization=ON`, to have all of it.

        Args:
          tpu_config: `TPUConfig()` if `None`.
          evaluation_master: the address for evaluations; `master` if `None`.
          master: the address of the system. A TPUEstimator takes every address for the emulated
            system, contacts nothing and says so.
          cluster: a cluster resolver, instead of `master`. `cluster_spec` then names the emulated
            hosts, but counts as false and is not in `session_config`, for nobody listens.
          input_deadline_secs: seconds after which the run fails if a step waits for a host whose
            input_fn produces nothing. The original waits for ever.
          id_policy: the fate of ids outside of their vocabulary: `'error'`, `'drop'`, `'clip'` or
            `'mod'`, for all features or by feature. All but `'error'` count such ids. `None`
            takes `etpe run --ids`, and `'error'` without it.
          nonfinite_gradients: the fate of a training step in which the gradient of a table is NaN
            or infinite. `'error'` ends the run. `'skip'` leaves all tables and slots as they are,
            counts the step and goes on. It protects tables only. The optimizer in `model_fn` has
            the gradients of the other variables. A loss that is NaN still ends the run.
          shutdown_deadline_secs: seconds that the end of a run waits, in all, for input_fns that
            do not return and operations that still run. Then it leaves them behind with a
            warning. After SIGTERM it waits two seconds.
          checkpoint: how checkpoints are written and checked, and which differences between a
            checkpoint and the job are meant. `None` takes the options of `etpe run`.
          kernels: the kernels that execute the tables. `'native'` is the compiled library of this
            package, `'stock'` is TensorFlow's own operations. `'auto'` takes
            `etpe run --kernels`, and without it the library if it was built.
          kernel_threads: threads of the library, in [1, 1024]. `None` takes the first of these:
            `etpe run --kernel-threads`, `intra_op_parallelism_threads` of `session_config`, one
            per core that the process may use.
          workers: addresses of the processes that are the hosts of this job, in a list or with
            commas between them. `None` takes those of `etpe run --workers` or `--processes`.
          worker_deadline_secs: seconds that a lost worker has to come back, before the run fails.
          step_deadline_secs: seconds that a step or a save over workers may take. Then all begin
            anew with the last checkpoint. `None` is no limit while all workers answer the client.
          input_on_workers: whether the input of a host is built on its worker, which then reads
            the files. They must have the same paths there, and nothing may call Python. `None`
            takes `etpe run --input-on-workers`. Without workers it changes nothing.
          backend: `'tpu'` or `'emulated'`. It chooses nothing: it must be that of the process,
            which `install()` or `etpe run` has chosen. `None` is any.
          table_memory: lets large tables be on a local disk. `None` takes `etpe run --table-dir`,
            and without it all tables are in memory.

        Raises:
          ValueError: if both `master` and `cluster` are given, or `cluster` with a
            `session_config` that has a cluster of its own.
          ConfigError: for an unknown word as `nonfinite_gradients` or `kernels`, a number of
            threads out of range, or a backend that is not that of the process; with every problem
            of the workers.
          TypeError: if `checkpoint` is no `CheckpointOptions`, or `table_memory` no
            `TableMemory`.
        """
        if nonfinite_gradients not in ('error', 'skip'):
            raise ConfigError(Problem(
                'E458', 'RunConfig.nonfinite_gradients', 'it must be "error" or "skip"',
                repr(nonfinite_gradients)))
        _check_options(checkpoint)
        if not isinstance(table_memory, TableMemory | None):
            raise TypeError(str(Problem('E498', 'RunConfig', 'table_memory must be a TableMemory',
                                        repr(table_memory))))
        self.kernels, self.kernel_threads = kernels, kernel_threads
        self.table_memory = table_memory
        self.workers = dataclasses.replace(
            ClusterChoice.of(workers), worker_deadline=worker_deadline_secs,
            step_deadline=step_deadline_secs)
        if problems := [*Kernels(kernels, kernel_threads, table_memory).problems('RunConfig'),
                        *self.workers.problems(), *_backend_problems(backend)]:
            raise ConfigError(*problems)
        self._input_on_workers = input_on_workers
        with _tf.without_deprecation_warnings():
            super().__init__(**kwargs)
        wished = self._experimental_distribute
        self.clusters_named_by = [] if not self.cluster_spec else [
            'RunConfig.experimental_distribute' if wished and wished.remote_cluster
            else 'TF_CONFIG']
        self.checkpoint = checkpoint
        self.input_deadline_secs = input_deadline_secs
        self.shutdown_deadline_secs = shutdown_deadline_secs
        self.id_policy = id_policy
        self.nonfinite_gradients = nonfinite_gradients
        self._tpu_config = tpu_config or TPUConfig()
        self._cluster = cluster
        if master is not None and cluster is not None:
            raise ValueError('Both master and cluster are set.')
        if master is not None:
            self._master = master
        elif cluster is not None:
            self._master = str(cluster.master())
        if evaluation_master is not None:
            self._evaluation_master = evaluation_master
        elif not self._evaluation_master and self.task_type != 'evaluator':
            self._evaluation_master = self._master
        self.stated_master: str = self._master
        if cluster is not None:
            self._take_cluster(cluster.cluster_spec())

    def _take_cluster(self, spec: Any) -> None:
        config: tf.ConfigProto = self.session_config
        if config is None:
            config = tf.ConfigProto(allow_soft_placement=True, isolate_session_state=True)
            self._session_config = config
        if config.HasField('cluster_def'):
            raise ValueError('You cannot provide a ClusterResolver and session_config.cluster_def.')
        if isinstance(spec, EmulatedCluster):
            if not self.cluster_spec:  # A cluster of TF_CONFIG stays visible.
                self._cluster_spec = ClusterOfConfig(spec)
        elif spec:
            self._cluster_spec = spec
            self.clusters_named_by.append('RunConfig.cluster')
            config.cluster_def.CopyFrom(spec.as_cluster_def())

    def _maybe_overwrite_session_config_for_distributed_training(self) -> None:
        """Leaves the session config alone: TPU jobs use no device filters."""

    @property
    def tpu_config(self) -> TPUConfig:
        """The TPUConfig."""
        return self._tpu_config

    @property
    def cluster(self) -> Any:
        """The cluster resolver, or `None`."""
        return self._cluster

    @property
    def input_on_workers(self) -> bool:
        """Whether the input of each host is built on its worker, if it has one."""
        asked = self._input_on_workers
        return defaults.current().input_on_workers if asked is None else asked

    def replace(self, **kwargs: Any) -> RunConfig:
        """Returns a copy with other values; see `tf.estimator.RunConfig.replace`.

        `tpu_config` and `checkpoint` can be replaced too.
        """
        tpu_config, checkpoint = kwargs.pop('tpu_config', None), kwargs.pop('checkpoint', None)
        _check_options(checkpoint)
        replaced = super().replace(**kwargs) if kwargs else copy.deepcopy(self)
        if tpu_config is not None:
            replaced._tpu_config = tpu_config
        if checkpoint is not None:
            replaced.checkpoint = checkpoint
        return replaced


def _backend_problems(backend: str | None) -> Iterator[Problem]:
    of_process = defaults.current().backend
    if backend not in (None, of_process):
        yield Problem('E940', 'RunConfig.backend',
                      f'it must be that of the process, "{of_process}"', repr(backend),
                      'Choose it with install(backend=...) or etpe run --backend.')


def _check_options(checkpoint: Any) -> None:
    if checkpoint is not None and not isinstance(checkpoint, CheckpointOptions):
        raise TypeError(str(Problem('E498', 'RunConfig', 'checkpoint must be CheckpointOptions',
                                    repr(checkpoint))))


def without_cluster(config: tf.ConfigProto | None) -> tf.ConfigProto | None:
    """Returns a copy of the config of a session, without a cluster."""
    copied = copy.deepcopy(config)
    if copied is not None:
        copied.ClearField('cluster_def')
    return copied


def without_addresses(config: RunConfig) -> RunConfig:
    """Returns the config without addresses, since they mean the emulated system.

    A config with a cluster of processes, for runs without a TPU, keeps its addresses. Those of a
    real TPU are for that alone.
    """
    if defaults.current().backend == 'tpu':
        local = copy.copy(config)
        local._master = local._evaluation_master = ''
        local._cluster_spec = tf.train.ClusterSpec({})
        local._session_config = without_cluster(config.session_config)
        return local
    if config.cluster_spec:
        return config
    addresses = {'master': config.master}
    if config.evaluation_master != config.master:
        addresses['evaluation_master'] = config.evaluation_master
    announce_addresses('RunConfig', **addresses)
    local = copy.copy(config)
    local._master = local._evaluation_master = ''
    return local
