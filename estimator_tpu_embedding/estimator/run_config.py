"""Holds what a job says about its run: `RunConfig`, with checkpoints, deadlines and kernels."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf
from ..checkpoint.options import CheckpointOptions
from ..core.kernels import Kernels, checked
from ..errors import ConfigError, Problem
from .addresses import ClusterOfConfig, EmulatedCluster, lead_here
from .tpu_config import TPUConfig

_PlainRunConfig: Any = _legacy.run_config_class()


class RunConfig(_PlainRunConfig):
    """`tf.estimator.RunConfig`, and what a TPUEstimator needs besides."""

    def __init__(self, tpu_config: TPUConfig | None = None, evaluation_master: str | None = None,
                 master: str | None = None, cluster: Any = None, *,
                 input_deadline_secs: float = 600.0,
                 id_policy: str | Mapping[str, str] | None = None,
                 nonfinite_gradients: str = 'error', shutdown_deadline_secs: float = 60.0,
                 checkpoint: CheckpointOptions | None = None, kernels: str = 'auto',
                 kernel_threads: int | None = None, **kwargs: Any):
        """Stores the arguments; `kwargs` are those of `tf.estimator.RunConfig`.

        Args:
          tpu_config: `TPUConfig()` if `None`.
          evaluation_master: of evaluations; `master` if `None`.
          master: address of the system. A TPUEstimator takes every one for the emulated system,
            contacts nothing and says so.
          cluster: a cluster resolver, instead of `master`. The `cluster_spec` of one of emulated
            hosts is told here too, but is false and not in `session_config`, for nobody listens.
          input_deadline_secs: after so many seconds in which a step waits for a host whose
            input_fn produces nothing, the run fails. The original waits for ever.
          id_policy: what becomes of ids outside of their vocabulary: `'error'`, `'drop'`,
            `'clip'` or `'mod'`, for all features or by feature; `None` is what
            `etpe run --ids` says, else `'error'`. All but the first are counted.
          nonfinite_gradients: what becomes of a training step in which the gradient of a table
            is NaN or infinite: `'error'` ends the run; `'skip'` leaves all tables and slots as
            they are, counts the step and goes on. It protects tables alone: the optimizer in
            `model_fn` has the gradients of the other variables, and a loss that is NaN ends the
            run as ever.
          shutdown_deadline_secs: so long the end of a run waits, for every input_fn that does not
            return and every operation that still runs together; then it leaves them behind with
            a warning. Once SIGTERM has come it waits two seconds.
          checkpoint: how checkpoints are written and checked, and which differences between one
            and the job are meant; `None` is what the options of `etpe run` say.
          kernels: what executes the tables: `'native'`, the compiled library of this package,
            `'stock'`, TensorFlow's own operations, or `'auto'`, which is what
            `etpe run --kernels` says, else the library where it was built.
          kernel_threads: of the library, in [1, 1024]; `None` is what
            `etpe run --kernel-threads` says, else `intra_op_parallelism_threads` of
            `session_config`, else one per core that the process may use.

        Raises:
          ValueError: if both `master` and `cluster` are given, or `cluster` with a
            `session_config` that has a cluster of its own.
          ConfigError: for another word than those of `nonfinite_gradients` or `kernels`, or a
            number of threads out of range.
          TypeError: if `checkpoint` is something else.
        """
        if nonfinite_gradients not in ('error', 'skip'):
            raise ConfigError(Problem(
                'E458', 'RunConfig.nonfinite_gradients', 'it must be "error" or "skip"',
                repr(nonfinite_gradients)))
        _check_options(checkpoint)
        self._kernels = checked(Kernels(kernels, kernel_threads), 'RunConfig')
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
            self._master = cluster.master()
        if evaluation_master is not None:
            self._evaluation_master = evaluation_master
        elif not self._evaluation_master and self.task_type != 'evaluator':
            self._evaluation_master = self._master
        if cluster is not None:
            self._take_cluster(cluster.cluster_spec())

    def _take_cluster(self, spec: Any) -> None:
        """Makes the cluster of a resolver that of the config and of its sessions."""
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
        """Returns the name of the setting that named the cluster which the base class found."""
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
        """What names a cluster of processes: `'TF_CONFIG'`, or an argument."""
        return self._clusters_named_by

    @property
    def input_deadline_secs(self) -> float:
        """Seconds that a step waits for a host whose input_fn produces nothing."""
        return self._input_deadline_secs

    @property
    def shutdown_deadline_secs(self) -> float:
        """Seconds that the end of a run waits for what does not end."""
        return self._shutdown_deadline_secs

    @property
    def id_policy(self) -> str | Mapping[str, str] | None:
        """What becomes of ids outside of their vocabulary."""
        return self._id_policy

    @property
    def nonfinite_gradients(self) -> str:
        """What becomes of a step in which the gradient of a table is not finite."""
        return self._nonfinite_gradients

    @property
    def kernels(self) -> str:
        """What executes the tables."""
        return self._kernels.choice

    @property
    def kernel_threads(self) -> int | None:
        """Threads of the native kernels."""
        return self._kernels.threads

    @property
    def checkpoint(self) -> CheckpointOptions | None:
        """How checkpoints are written, and which differences to them are meant."""
        return self._checkpoint

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other values; see `tf.estimator.RunConfig.replace`.

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


def in_this_process(config: RunConfig) -> RunConfig:
    """The config as a TPUEstimator takes it: addresses of TPUs mean the emulated system.

    Where there is a cluster of processes, without a TPU, they are those of its sessions.
    """
    master, of_evaluations = config.master, config.evaluation_master
    if config.cluster_spec:
        return config
    lead_here('RunConfig', master=master,
              evaluation_master=of_evaluations if of_evaluations != master else None)
    local = copy.copy(config)
    local._master = local._evaluation_master = ''
    return local
