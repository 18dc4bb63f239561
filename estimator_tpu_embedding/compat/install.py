"""Defines `install()`, which restores the names that TensorFlow 2.16 removed."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from ..checkpoint.options import CheckpointOptions
from ..cluster import listening
from ..cluster.worker_choice import ClusterChoice
from ..core.specs import System
from ..core.table_memory import TableMemory
from ..errors import ConfigError, Problem, shown
from . import environment

_backend: str | None = None
"""The backend that `install()` has put into TensorFlow."""


def install(hosts: int | None = None, cores: int | None = None, ids: str | None = None, *,
            steps: int | None = None, contrib: bool = False, tf1: bool = False,
            checkpoint: CheckpointOptions | None = None, kernels: str | None = None,
            kernel_threads: int | None = None, workers: str | Sequence[str] | None = None,
            processes: int | None = None, expose: bool = False,
            input_on_workers: bool = False, old_python: bool = False,
            backend: str = 'emulated', graph_only: str | None = None,
            table_memory: TableMemory | None = None) -> None:
    """Makes TF1 TPUEstimator scripts importable and sizes the emulated TPU system.

    Call it before TensorFlow is imported. It restores these names, under every path that
    TensorFlow 2.15 had for them:

    - `tf.estimator` and `tf.compat.v1.estimator`, with the TPU classes of this package in them;
    - the optimizer parameters under `tf.compat.v1.tpu.experimental`;
    - `tf.data.experimental.CheckpointInputPipelineHook`;
    - the deleted modules of `tensorflow.python`;
    - private names that moved and mean the same, as aliases (`OLD_NAMES.md`).

    It makes `TPUClusterResolver` find the emulated system. It emulates functions of
    `tf.compat.v1.tpu` that have no CPU kernel: `cross_replica_sum`, `shard`, `replicate`,
    `batch_parallel`, `rewrite`, `initialize_system` and `shutdown_system`. Connecting to the
    emulated system does nothing, and neither does initializing it. LOST_NAMES.md lists the fate
    of all names. Another call replaces the sizes and choices of the one before.

    For TF2 it replaces `tf.tpu.experimental.embedding.TPUEmbedding`, and
    `tf.distribute.TPUStrategy` with its older names. The replicas of a strategy are logical CPU
    devices. The first strategy makes them, so jobs without a strategy keep their single CPU.
    `TPUEmbeddingForServing` stays, and warns once if a model's optimizer trains its tables (W008).

    Args:
      hosts: emulated TPU hosts, >= 1.
      cores: cores per host, >= 1. With neither given the system has one core, or as many as
        the script's `TPUConfig(num_shards=...)` says.
      ids: policy for ids outside of their vocabulary, for jobs whose `RunConfig` states none:
        `'error'`, `'drop'`, `'clip'` or `'mod'`; `'error'` if `None`.
      steps: the most steps of each `train()` of an Estimator, >= 1.
      contrib: whether to restore the part of `tf.contrib` that jobs for TPUs use.
      tf1: whether `import tensorflow` gives the names and the behaviour of TensorFlow 1.15 from
        now on, instead of TensorFlow 2. It cannot be undone.
      checkpoint: options of checkpoints, for jobs whose `RunConfig` states none.
      kernels: kernels of the tables, for jobs whose `RunConfig` states none: `'native'`,
        `'stock'` or `'auto'`; `'auto'` if `None`. See `RunConfig`.
      kernel_threads: threads of the native kernels, for jobs whose `RunConfig` states none.
      workers: addresses of processes that are the hosts of jobs, such as
        `['10.0.0.3:8470', '10.0.0.4:8470']`, or one string with commas. Each runs `etpe worker`.
        `'from-script'` takes the addresses that the script has for its TPU.
      processes: workers that each job starts for itself on this machine, instead of `workers`.
      expose: whether servers of a cluster may listen where other machines reach them.
      input_on_workers: whether the input of each host is built on its worker, for jobs whose
        `RunConfig` does not say it. See `RunConfig`.
      old_python: whether to bring back what Python and NumPy dropped, such as
        `inspect.getargspec` and `np.float`. Nothing that exists is changed.
      backend: `'tpu'` is for a real TPU: the functions of TensorFlow for TPUs stay as they are, and
        a TPUEstimator is the original's. It cannot change within a process.
      graph_only: with `backend='tpu'`, a directory in which each run of a TPUEstimator writes its
        graphs, for a system of `hosts` and `cores`, instead of running.
      table_memory: lets large tables be on a local disk, for jobs whose `RunConfig` has none.

    Raises:
      SetupError: if TensorFlow was imported without the legacy-Keras switch, or a
        package is missing.
      ExposedServerError: if workers were chosen, other machines could reach the server that this
        process needs for them, and `expose` is false.
      ConfigError: with every argument that is out of range or unknown.

    >>> import estimator_tpu_embedding
    >>> estimator_tpu_embedding.install(hosts=2, cores=4)
    >>> import tensorflow as tf
    >>> resolver = tf.distribute.cluster_resolver.TPUClusterResolver('my-tpu')
    >>> resolver.cluster_spec().num_tasks('worker'), resolver.num_accelerators()
    (2, {'TPU': 4})
    >>> tf.estimator.tpu.TPUEstimator is estimator_tpu_embedding.TPUEstimator
    True
    """
    environment.prepare()
    if contrib:
        environment.check_packages(environment.FOR_CONTRIB)
    without_effect = environment.variables_without_effect()
    if workers or processes:
        environment.hide_warnings_of_tensorflow()
    from .. import defaults
    from ..core.specs import Kernels
    from ..native import library
    from ..runner.progress import announce
    from . import deleted_modules, import_paths, plain_training, tf2, tpu_functions
    cluster = ClusterChoice.of(workers, processes, expose=expose)
    if cluster.is_used or cluster.is_from_script:
        listening.require_private('the workers of this job', expose)
    for problem in without_effect:
        announce(str(problem))
    defaults.set_current(defaults.Defaults(
        system=_system(hosts, cores, cluster), cluster=cluster,
        id_policy='error' if ids is None else ids,
        kernels=Kernels('auto' if kernels is None else kernels, kernel_threads, table_memory),
        checkpoint=checkpoint or CheckpointOptions(), step_limit=steps,
        input_on_workers=input_on_workers, backend=backend,
        graph_only=None if graph_only is None else os.path.abspath(graph_only)))
    _require_same_backend(backend)
    if graph_only is not None:
        _make_directory(graph_only)
    deleted_modules.put_in_place()
    import_paths.put_aliases()
    if backend == 'emulated':
        tpu_functions.put_in_place()
        tf2.put_in_place()
        tf2.tell_who_trains()
        plain_training.put_in_place()
    elif graph_only is not None:
        tpu_functions.connect_nowhere()
    library.load()  # So that graphs of `.meta` files that use it can be imported.
    if old_python:
        from . import old_python as dropped
        dropped.put_in_place(announce)
    if tf1:
        from . import tf1 as tensorflow_1
        tensorflow_1.put_in_place()
    if contrib:
        from .contrib import contrib_modules
        contrib_modules.put_in_place()


def _make_directory(graph_only: str) -> None:
    """Makes a directory if it is not there; raises ConfigError if it cannot."""
    try:
        os.makedirs(graph_only, exist_ok=True)
    except OSError as error:
        raise ConfigError(Problem('E940', 'graph_only', 'it must be a directory that can be made',
                                  f'{shown(repr(graph_only))}: {shown(error.strerror)}')) from error


def _require_same_backend(backend: str) -> None:
    """Raises ConfigError if an earlier call has put another backend into TensorFlow."""
    global _backend
    if _backend not in (None, backend):
        raise ConfigError(Problem(
            'E940', 'backend', 'a process has one: install() changes functions of TensorFlow for '
            'it', f'{shown(repr(backend))} after "{_backend}"', 'Use another process.'))
    _backend = backend


def _system(hosts: int | None, cores: int | None, cluster: ClusterChoice) -> System:
    """Returns the system of a stated size, which has a host per worker if there are workers.

    Raises:
      ConfigError: if another number of hosts is stated.
    """
    problem = cluster.hosts_problem(hosts)
    if problem is not None:
        raise ConfigError(problem, *cluster.problems())
    if hosts is not None or not cluster.is_used:
        return System.sized(hosts, cores)
    return dataclasses.replace(System.sized(cluster.num_hosts, cores),
                               is_explicit=cores is not None)
