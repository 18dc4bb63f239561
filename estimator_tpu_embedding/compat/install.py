"""Defines `install()`, which restores the names that TensorFlow 2.16 removed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

from ..checkpoint.options import CheckpointOptions
from ..cluster import listening
from ..cluster.choice import ClusterChoice
from ..core.specs import System
from ..errors import ConfigError
from . import environment


def install(hosts: int | None = None, cores: int | None = None, ids: str | None = None, *,
            steps: int | None = None, contrib: bool = False, tf1: bool = False,
            checkpoint: CheckpointOptions | None = None, kernels: str | None = None,
            kernel_threads: int | None = None, workers: str | Sequence[str] | None = None,
            processes: int | None = None, expose: bool = False,
            input_on_workers: bool = False, old_python: bool = False) -> None:
    """Makes TF1 TPUEstimator scripts importable and sizes the emulated TPU system.

    Call it before TensorFlow is imported. It restores these names, under every path that
    TensorFlow 2.15 had for them:

    - `tf.estimator` and `tf.compat.v1.estimator`, with the TPU classes of this package in them;
    - the optimizer parameters under `tf.compat.v1.tpu.experimental`;
    - `tf.data.experimental.CheckpointInputPipelineHook`;
    - the deleted modules of `tensorflow.python`;
    - private names that are elsewhere today and mean the same, as aliases (`compat/moved.py`).

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

    Raises:
      SetupError: if TensorFlow was imported without the legacy-Keras switch, or a
        package is missing.
      ExposedServerError: if workers were chosen, other machines could reach the server that this
        process needs for them, and `expose` is false.
      ConfigError: with every argument that is out of range or unknown; or for a value of
        TF_TPU_GRACEFUL_SHUTDOWN_MODE that the original refuses.

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
    from ..core.kernels import Kernels
    from ..native import library
    from ..runner.progress import announce
    from . import aliases, cpu_tables, plain_training, remote, tf2
    cluster = ClusterChoice.of(workers, processes, expose=expose)
    if cluster.is_used or cluster.is_from_script:
        listening.require_private('the workers of this job', expose)
    for problem in without_effect:
        announce(str(problem))
    defaults.set_current(defaults.Defaults(
        system=_system(hosts, cores, cluster), cluster=cluster,
        id_policy='error' if ids is None else ids,
        kernels=Kernels('auto' if kernels is None else kernels, kernel_threads),
        checkpoint=checkpoint or CheckpointOptions(), step_limit=steps,
        input_on_workers=input_on_workers))
    _restore_modules()
    _restore_estimator()
    _restore_names()
    aliases.put_in_place()
    _emulate_tpu_functions()
    remote.open_sessions_here()
    tf2.put_in_place()
    cpu_tables.tell_who_trains()
    _limit_plain_estimators()
    plain_training.count_steps()
    library.load()  # So that graphs of `.meta` files that use it can be imported.
    if old_python:
        from . import old_python as dropped
        dropped.put_in_place(announce)
    if tf1:
        from . import tf1 as face
        face.put_on()
    if contrib:
        from .contrib import place
        place.put_in_place()


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


def _restore_modules() -> None:
    """Fills the deleted modules, and replaces names that other modules imported from them."""
    from .. import _legacy
    from . import modules, roads
    _legacy.load()
    ours: dict[object, object] = {}
    for path, names in modules.names_by_module().items():
        module = roads.module_to_fill(path, _legacy.StandIn)
        placeholders = _legacy.STAND_INS.get(path, {})
        ours.update((placeholders[name], names[name]) for name in placeholders.keys() & names)
        vars(module).update(names)
    for path, module in list(sys.modules.items()):
        if path.startswith('tensorflow_estimator.'):
            for name, value in list(vars(module).items()):
                if isinstance(value, type) and value in ours:
                    setattr(module, name, ours[value])
    for path, target in modules.other_paths().items():
        roads.lead(path, target)


def _restore_estimator() -> None:
    """Restores `estimator` below all roots, and `tensorflow.python.estimator`."""
    from .. import _legacy
    from . import roads
    v1, v2 = _legacy.load(), _legacy.load_v2()
    for one, other in ((v2, v1), (v2.experimental, v1.experimental)):
        for name in vars(other).keys() - vars(one).keys():
            if not name.startswith('_'):
                setattr(one, name, getattr(other, name))  # TensorFlow 1.x had it in `tf`.
    for root in roads.ROOTS:
        roads.put_api(root, v1 if root in roads.V1_ROOTS else v2)
    package = 'tensorflow_estimator.python.estimator'
    roads.put_module(f'{package}.keras', _legacy.keras_module())
    roads.move({'tensorflow.python.estimator': package})


def _restore_names() -> None:
    """Restores names of modules that are still there."""
    from ..estimator import parameters
    from ..runner.input_state import CheckpointInputPipelineHook
    from . import devices, remote, roads
    from .resolver import TPUClusterResolver
    for root in roads.ROOTS:
        roads.put(roads.joined(root, 'data.experimental'), 'CheckpointInputPipelineHook',
                  CheckpointInputPipelineHook)
        roads.put(roads.joined(root, 'distribute.cluster_resolver'), 'TPUClusterResolver',
                  TPUClusterResolver)
    for cls in (parameters.AdagradParameters, parameters.AdamParameters,
                parameters.FtrlParameters, parameters.StochasticGradientDescentParameters):
        for root in roads.V1_ROOTS:
            roads.put(roads.joined(root, 'tpu.experimental'), cls.__name__, cls)
    for path, name, function in (*remote.replaced(), *devices.replaced()):
        for root in roads.ROOTS:
            roads.put(roads.joined(root, path), name, function)


def _emulate_tpu_functions() -> None:
    """Replaces functions that need the ops of a TPU, in every module that has them."""
    import tensorflow.compat.v1 as tf

    from .. import _tf
    from ..estimator import replicate
    from ..estimator.cross_shard import CrossShardOptimizer, cross_replica_sum
    from . import feeds, roads
    feeds.refuse()
    # TensorFlow's own would sum the n-th gradients of all cores, whatever their variables are.
    tf.tpu.CrossShardOptimizer.apply_gradients = CrossShardOptimizer.apply_gradients
    _tf.tpu_ops_module().cross_replica_sum = cross_replica_sum
    module = _tf.tpu_module()
    module.split_compile_and_replicate = replicate.split_compile_and_replicate
    module.initialize_system = replicate.initialize_system
    module.shutdown_system = replicate.shutdown_system
    for root in roads.V1_ROOTS:
        for function in (cross_replica_sum, replicate.initialize_system,
                         replicate.shutdown_system):
            roads.put(roads.joined(root, 'tpu'), function.__name__, function)


def _limit_plain_estimators() -> None:
    """Limits each training of a plain Estimator to the step limit of the process."""
    import tensorflow.compat.v1 as tf

    from .. import _legacy, defaults

    def hooks() -> list[tf.train.SessionRunHook]:
        limit = defaults.current().step_limit
        return [] if limit is None else [tf.train.StopAtStepHook(num_steps=limit)]

    _legacy.add_train_hooks(hooks)
