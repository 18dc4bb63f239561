"""Holds the settings of a job for its run: `RunConfig`, with checkpoints, deadlines, kernels."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf, defaults
from ..checkpoint.options import CheckpointOptions
from ..cluster.choice import ClusterChoice
from ..core.kernels import Kernels, checked
from ..errors import ConfigError, Problem
from .tpu_addresses import ClusterOfConfig, EmulatedCluster, lead_here
from .tpu_config import TPUConfig

_PlainRunConfig: Any = _legacy.run_config_class()


class RunConfig(_PlainRunConfig):
    """`tf.estimator.RunConfig`, with the settings that a TPUEstimator needs besides.

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
                 **kwargs: Any):
        """Stores the arguments; `kwargs` go to `tf.estimator.RunConfig`.

        Sessions leave a graph of more than 20,000 nodes as it is: Grappler's time and memory grow
        faster than the graph. Set any option of `rewrite_options` in `session_config`, such as
        `dependency_optimization=ON`, to have it there, too.

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

        Raises:
          ValueError: if both `master` and `cluster` are given, or `cluster` with a
            `session_config` that has a cluster of its own.
          ConfigError: for an unknown word as `nonfinite_gradients` or `kernels`, or a number of
            threads out of range; with every problem of the workers.
          TypeError: if `checkpoint` is no `CheckpointOptions`.
        """
        if nonfinite_gradients not in ('error', 'skip'):
            raise ConfigError(Problem(
                'E458', 'RunConfig.nonfinite_gradients', 'it must be "error" or "skip"',
                repr(nonfinite_gradients)))
        _check_options(checkpoint)
        self._kernels = checked(Kernels(kernels, kernel_threads), 'RunConfig')
        self._workers = _workers(workers, worker_deadline_secs, step_deadline_secs)
        self._input_on_workers = input_on_workers
        self._stated_master: str | None = None
        with _tf.without_deprecation_warnings():
            super().__init__(**kwargs)
        self._clusters_named_by = [self._source_of_cluster()] if self.cluster_spec else []
        self._checkpoint = checkpoint
        self._input_deadline_secs = input_deadline_secs
        self._shutdown_deadline_secs = shutdown_deadline_secs
        self._id_policy = id_policy
        self._nonfinite_gradients = nonfinite_gradients
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
        if cluster is not None:
            self._take_cluster(cluster.cluster_spec())

    def _take_cluster(self, spec: Any) -> None:
        """Gives the config, and its sessions, the cluster of a resolver."""
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
            self._clusters_named_by.append('RunConfig.cluster')
            config.cluster_def.CopyFrom(spec.as_cluster_def())

    def _source_of_cluster(self) -> str:
        """Returns the setting that named the cluster, which the base class found."""
        wished = self._experimental_distribute
        return ('RunConfig.experimental_distribute' if wished and wished.remote_cluster
                else 'TF_CONFIG')

    def _maybe_overwrite_session_config_for_distributed_training(self) -> None:
        """Leaves the session config alone: TPU jobs use no device filters."""

    @property
    def evaluation_master(self) -> str:
        """The address for evaluations."""
        return self._evaluation_master

    @property
    def master(self) -> str:
        """The address for everything else."""
        return self._master

    @property
    def tpu_config(self) -> TPUConfig:
        """The TPUConfig."""
        return self._tpu_config

    @property
    def cluster(self) -> Any:
        """The cluster resolver, or `None`."""
        return self._cluster

    @property
    def clusters_named_by(self) -> list[str]:
        """The settings that name a cluster of processes: `'TF_CONFIG'`, or an argument."""
        return self._clusters_named_by

    @property
    def input_deadline_secs(self) -> float:
        """Seconds that a step waits for a host whose input_fn produces nothing."""
        return self._input_deadline_secs

    @property
    def shutdown_deadline_secs(self) -> float:
        """Seconds that the end of a run waits for input and operations that do not end."""
        return self._shutdown_deadline_secs

    @property
    def id_policy(self) -> str | Mapping[str, str] | None:
        """The fate of ids outside of their vocabulary."""
        return self._id_policy

    @property
    def nonfinite_gradients(self) -> str:
        """The fate of a step in which the gradient of a table is not finite."""
        return self._nonfinite_gradients

    @property
    def kernels(self) -> str:
        """The kernels that execute the tables."""
        return self._kernels.choice

    @property
    def kernel_threads(self) -> int | None:
        """Threads of the native kernels."""
        return self._kernels.threads

    @property
    def workers(self) -> ClusterChoice:
        """The processes that this config names as hosts, and how long they may be away."""
        return self._workers

    @property
    def input_on_workers(self) -> bool:
        """Whether the input of each host is built on its worker, if it has one."""
        asked = self._input_on_workers
        return defaults.current().input_on_workers if asked is None else asked

    @property
    def stated_master(self) -> str:
        """The `master` as the script stated it, before it meant the emulated system."""
        return self.master if self._stated_master is None else self._stated_master

    @property
    def checkpoint(self) -> CheckpointOptions | None:
        """The options of checkpoints."""
        return self._checkpoint

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
            replaced._checkpoint = checkpoint
        return replaced


def _check_options(checkpoint: Any) -> None:
    if checkpoint is not None and not isinstance(checkpoint, CheckpointOptions):
        raise TypeError(str(Problem('E498', 'RunConfig', 'checkpoint must be CheckpointOptions',
                                    repr(checkpoint))))


def _workers(workers: str | Sequence[str] | None, deadline: float, of_step: float | None
             ) -> ClusterChoice:
    choice = dataclasses.replace(ClusterChoice.of(workers), worker_deadline=deadline,
                                 step_deadline=of_step)
    if problems := list(choice.problems()):
        raise ConfigError(*problems)
    return choice


def in_this_process(config: RunConfig) -> RunConfig:
    """Returns the config without addresses, since they mean the emulated system.

    A config with a cluster of processes, for runs without a TPU, keeps its addresses.
    """
    master, of_evaluations = config.master, config.evaluation_master
    if config.cluster_spec:
        return config
    lead_here('RunConfig', master=master,
              evaluation_master=of_evaluations if of_evaluations != master else None)
    local = copy.copy(config)
    local._stated_master = config.stated_master
    local._master = local._evaluation_master = ''
    return local
