"""Trains plain Estimators with strategies of `tf.distribute` over the processes of a cluster.

It takes the place of `tensorflow.python.distribute.estimator_training`, which TensorFlow 2.16
deleted. Estimator and RunConfig call its functions, which decide which process runs which task.
TensorFlow's coordinator still exists. It starts servers, sets up strategies, and calls back for
each task. The task then works with a copy of the Estimator that knows its place.

| `TF_CONFIG` | `RunConfig` | who trains |
|---|---|---|
| no cluster, or one with a `master` | any | the Estimator itself, without the coordinator |
| a cluster | no `train_distribute` | the Estimator itself, without the coordinator |
| a cluster | `train_distribute` | each process that runs the script: independent workers |
| no cluster | `train_distribute` and `remote_cluster` | this process, with servers elsewhere |
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._tf import distribute
from .errors import ConfigError, Problem

CHIEF, EVALUATOR, PS, WORKER = 'chief', 'evaluator', 'ps', 'worker'


def init_run_config(config: Any, tf_config: Mapping[str, Any]) -> None:
    """Completes a RunConfig that has a strategy, and no cluster yet.

    Raises:
      ConfigError: if a strategy or the cluster is given twice.
    """
    import tensorflow.compat.v1 as tf
    wished = config._experimental_distribute
    for kind in ('train_distribute', 'eval_distribute') if wished else ():
        if strategy := getattr(wished, kind):
            if getattr(config, f'_{kind}'):
                raise ConfigError(Problem(
                    'E472', 'RunConfig', f'a strategy is given as {kind} or as '
                    f'experimental_distribute.{kind}, not as both', remedy='Remove one.'))
            setattr(config, f'_{kind}', strategy)
    cluster = tf.train.ClusterSpec(tf_config.get('cluster', {}))
    remote = wished.remote_cluster if wished and config._train_distribute else None
    modes = distribute.coordinator().CoordinatorMode
    if remote and cluster:
        raise ConfigError(Problem(
            'E472', 'RunConfig', 'a cluster is named by TF_CONFIG or by '
            'experimental_distribute.remote_cluster, not by both', remedy='Remove one.'))
    if remote:
        mode, cluster = modes.STANDALONE_CLIENT, tf.train.ClusterSpec(remote)
    elif cluster and 'master' not in cluster.jobs and config._train_distribute:
        mode = modes.INDEPENDENT_WORKER
    else:
        config._distribute_coordinator_mode = None
        config._init_distributed_setting_from_environment_var(tf_config)
        config._maybe_overwrite_session_config_for_distributed_training()
        return
    # When the coordinator calls, it says which task this process is.
    config._init_distributed_setting_from_environment_var({})
    config._distribute_coordinator_mode, config._cluster_spec = mode, cluster
    tf.logging.info('RunConfig: %s runs over %s as %s', type(config._train_distribute).__name__,
                    cluster.as_dict(), mode)


def should_run_distribute_coordinator(config: Any) -> bool:
    """Returns whether `train_and_evaluate` hands this cluster to the coordinator."""
    return bool(getattr(config, '_distribute_coordinator_mode', None) and config.cluster_spec)


def train_and_evaluate(estimator: Any, train_spec: Any, eval_spec: Any, executor_cls: Any) -> None:
    """Runs the tasks that this process is responsible for until they end.

    A chief or worker trains. An evaluator evaluates and exports each new checkpoint. A parameter
    server serves until it is killed, as all parameter servers do. Each task has a copy of the
    Estimator. `executor_cls` is the class of the nightly that evaluates again and again.
    """
    import tensorflow.compat.v1 as tf
    if train_spec.saving_listeners:
        tf.logging.warning('%s', Problem(
            'W474', 'TrainSpec', 'saving_listeners are not called where a strategy runs over a '
            'cluster', remedy='Use hooks.'))
    is_standalone = _is_standalone(estimator.config)

    def train(strategy: Any) -> None:
        mine = _for_this_task(estimator, 'train', strategy)
        # The threads of a standalone client share the objects; one of them may call hooks.
        calls_hooks = not is_standalone or distribute.task().is_chief
        mine.train(input_fn=train_spec.input_fn, max_steps=train_spec.max_steps,
                   hooks=list(train_spec.hooks) if calls_hooks else [])

    def evaluate(strategy: Any) -> None:
        mine = _for_this_task(estimator, 'eval', strategy)
        executor_cls(mine, train_spec, eval_spec)._start_continuous_evaluation()

    config = estimator.config
    distribute.coordinator().run_distribute_coordinator(
        train, config.train_distribute, evaluate, config.eval_distribute,
        mode=config._distribute_coordinator_mode,
        cluster_spec=config.cluster_spec if is_standalone else None,  # `None`: see TF_CONFIG.
        session_config=config.session_config)


def estimator_train(estimator: Any, train_distributed_fn: Callable[..., Any],
                    hooks: Sequence[Any]) -> Any:
    """Trains for `Estimator.train` with a strategy over a cluster.

    `train_distributed_fn` gets a copy of the Estimator, its strategy and the hooks.

    Raises:
      ConfigError: unless one process runs one graph for servers elsewhere.
    """
    return _run_alone(estimator, 'train', train_distributed_fn, hooks)


def estimator_evaluate(estimator: Any, evaluate_distributed_fn: Callable[..., Any],
                       hooks: Sequence[Any]) -> Any:
    """Evaluates for `Estimator.evaluate` with a strategy over a cluster; returns the metrics.

    It has the arguments and errors of `estimator_train`.
    """
    return _run_alone(estimator, 'eval', evaluate_distributed_fn, hooks)


def _run_alone(estimator: Any, kind: str, function: Callable[..., Any], hooks: Sequence[Any]
               ) -> Any:
    config = estimator.config
    strategy = getattr(config, f'{kind}_distribute')
    is_between_graph = strategy.extended.experimental_between_graph
    if is_between_graph or EVALUATOR in config.cluster_spec.jobs or not _is_standalone(config):
        raise ConfigError(Problem(
            'E473', f'Estimator.{"train" if kind == "train" else "evaluate"}',
            'over a cluster it runs only in one process that has experimental_distribute.'
            'remote_cluster without an evaluator, with a strategy of one graph',
            f'{type(strategy).__name__} as {config._distribute_coordinator_mode} over '
            f'{", ".join(config.cluster_spec.jobs)}', 'Call train_and_evaluate.'))

    def run(strategy: Any) -> Any:
        return function(_for_this_task(estimator, kind, strategy), strategy, hooks)
    return distribute.coordinator().run_distribute_coordinator(
        run, strategy, mode=config._distribute_coordinator_mode,
        cluster_spec=config.cluster_spec, session_config=config.session_config)


def _is_standalone(config: Any) -> bool:
    modes = distribute.coordinator().CoordinatorMode
    return bool(config._distribute_coordinator_mode == modes.STANDALONE_CLIENT)


def _for_this_task(estimator: Any, kind: str, strategy: Any) -> Any:
    """Returns a copy of an Estimator with the RunConfig of the task that the coordinator calls."""
    import tensorflow.compat.v1 as tf
    mine = copy.deepcopy(estimator)
    config, task = mine._config, distribute.task()
    setattr(config, f'_{kind}_distribute', strategy)
    setattr(mine, f'_{kind}_distribution', strategy)
    cluster = task.cluster_spec or tf.train.ClusterSpec({})
    is_evaluator = task.task_type == EVALUATOR
    vars(config).update(
        _distribute_coordinator_mode=None,  # The copy must not ask for a coordinator again.
        _service=None, _task_type=task.task_type, _task_id=task.task_id, _is_chief=task.is_chief,
        _master=task.master_target, _evaluation_master=task.master_target,
        # An evaluator sees no other task.
        _cluster_spec=tf.train.ClusterSpec({}) if is_evaluator else cluster,
        **_place(cluster, task.task_type, task.task_id))
    tf.logging.info('RunConfig of this task: %s', vars(config))
    return mine


def _place(cluster: Any, task_type: str | None, task_id: int | None) -> dict[str, int | None]:
    """Returns the counts of tasks for the RunConfig of one task, and its number.

    Chiefs are numbered first and parameter servers last; the other jobs are ordered by name.
    """
    if task_type == EVALUATOR:
        return dict(_num_ps_replicas=0, _num_worker_replicas=0, _global_id_in_cluster=None)
    tasks = [(job, index) for job in sorted(
        cluster.jobs, key=lambda job: (job == PS, job != CHIEF, job))
        for index in cluster.task_indices(job)]
    jobs = [job for job, _ in tasks]
    return dict(
        _num_ps_replicas=jobs.count(PS),
        _num_worker_replicas=jobs.count(WORKER) + jobs.count(CHIEF) if tasks else 1,
        # One graph for all workers belongs to none of them.
        _global_id_in_cluster=tasks.index((task_type, task_id)) if task_type else 0)
