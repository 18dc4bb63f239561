"""Plain Estimators with strategies, in this process and as a client of servers."""

import types

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from harness.network import require_private_network
from harness.processes import free_addresses

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy

nightly = _legacy.load()
X = np.random.default_rng(0).normal(size=[16, 3]).astype(np.float32)
TARGET = X @ np.float32([[1], [-2], [.5]])


def model_fn(features, labels, mode):
    w = tf.get_variable('w', [3, 1], initializer=tf.zeros_initializer())
    predicted = tf.matmul(features['x'], w)
    loss = tf.reduce_mean((predicted - labels) ** 2)
    return nightly.EstimatorSpec(
        mode, loss=loss, eval_metric_ops={'mean': tf.metrics.mean(predicted)},
        train_op=tf.train.GradientDescentOptimizer(.1).minimize(
            loss, tf.train.get_global_step()))


def batches(size, epochs=None):
    return lambda: tf.data.Dataset.from_tensor_slices(
        ({'x': X}, TARGET)).repeat(epochs).batch(size)


def sharded(input_context):
    """Batches of 4 of the samples of one of two workers."""
    return tf.data.Dataset.from_tensor_slices(({'x': X}, TARGET)).shard(
        input_context.num_input_pipelines, input_context.input_pipeline_id).repeat().batch(4)


def after(steps):
    """The weights after so many steps of 8 samples."""
    w = np.zeros([3, 1])
    for step in range(steps):
        rows = slice(0, 8) if step % 2 == 0 else slice(8, 16)
        w = w - .1 * 2 * X[rows].T @ (X[rows] @ w - TARGET[rows]) / 8
    return w


def loss_of(w):
    return pytest.approx(np.mean((X @ w - TARGET) ** 2), rel=1e-4)


STRATEGIES = {
    'Mirrored': lambda: tf2.distribute.MirroredStrategy(['/cpu:0']),
    'OneDevice': lambda: tf2.distribute.OneDeviceStrategy('/cpu:0'),
    'CentralStorage': lambda: tf2.distribute.experimental.CentralStorageStrategy(['/cpu:0']),
    'MultiWorkerMirrored': lambda: tf2.distribute.MultiWorkerMirroredStrategy(),
    'v1 ParameterServer': lambda: tf.distribute.experimental.ParameterServerStrategy()}


@pytest.mark.parametrize('name', STRATEGIES)
def test_a_strategy_of_one_replica_trains_and_evaluates_as_none_does(tmp_path, name):
    config = nightly.RunConfig(
        str(tmp_path), train_distribute=STRATEGIES[name](),
        eval_distribute=None if 'ParameterServer' in name else STRATEGIES[name]())
    estimator = nightly.Estimator(model_fn, config=config)
    results, _ = nightly.train_and_evaluate(
        estimator, nightly.TrainSpec(batches(8), max_steps=5),
        nightly.EvalSpec(batches(8, 1), steps=None))
    np.testing.assert_allclose(estimator.get_variable_value('w'), after(5), rtol=1e-5)
    assert results['loss'] == loss_of(after(5)) and results['global_step'] == 5


def test_two_replicas_train_as_one_does_with_both_of_their_batches(tmp_path):
    session_config = tf.ConfigProto(device_count={'CPU': 2})
    with tf.Graph().as_default():
        strategy = tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
    estimator = nightly.Estimator(model_fn, config=nightly.RunConfig(
        str(tmp_path), train_distribute=strategy, session_config=session_config))
    estimator.train(batches(4), steps=5)
    np.testing.assert_allclose(estimator.get_variable_value('w'), after(5), rtol=1e-5)


def test_a_tpu_estimator_without_tpu_takes_a_strategy(tmp_path):
    estimator = ete.TPUEstimator(
        lambda features, labels, mode, params: model_fn(features, labels, mode), use_tpu=False,
        config=ete.RunConfig(model_dir=str(tmp_path), train_distribute=STRATEGIES['Mirrored']()),
        train_batch_size=8)
    estimator.train(lambda params: batches(params['batch_size'])(), steps=3)
    np.testing.assert_allclose(estimator.get_variable_value('w'), after(3), rtol=1e-5)


def distribution(strategy, cluster=None, evaluation=None):
    """What `tf.contrib.distribute.DistributeConfig` was: three attributes."""
    return types.SimpleNamespace(train_distribute=strategy, eval_distribute=evaluation,
                                 remote_cluster=cluster)


def remote(directory, tasks, strategy, evaluation=None):
    """An Estimator, and servers in this process that it trains on."""
    require_private_network()
    addresses = iter(free_addresses(sum(tasks.values())))
    cluster = {job: [next(addresses) for _ in range(count)] for job, count in tasks.items()}
    config = nightly.RunConfig(
        str(directory), experimental_distribute=distribution(strategy, cluster, evaluation))
    servers = [tf.train.Server(cluster, job, index) for job, count in tasks.items()
               for index in range(count)]
    return nightly.Estimator(model_fn, config=config), servers


def test_one_process_trains_and_evaluates_on_servers_elsewhere(tmp_path):
    with tf.Graph().as_default():
        strategies = [tf.distribute.MirroredStrategy(
            [f'/job:worker/task:{task}/cpu:0' for task in range(2)]) for _ in range(2)]
        estimator, _servers = remote(tmp_path, {'worker': 2}, *strategies)
        estimator.train(sharded, max_steps=3)
        assert estimator.evaluate(sharded, steps=2)['loss'] == loss_of(after(3))
    np.testing.assert_allclose(estimator.get_variable_value('w'), after(3), rtol=1e-5)


def test_one_process_drives_workers_and_parameter_servers_elsewhere(tmp_path, caplog):
    estimator, _servers = remote(
        tmp_path, {'chief': 1, 'ps': 1}, STRATEGIES['v1 ParameterServer']())
    with pytest.raises(ete.EteError, match='E473 Estimator.train: .*; got ParameterServerStrategyV1'
                                           ' as standalone_client over chief, ps.'):
        estimator.train(batches(8), steps=1)
    nightly.train_and_evaluate(
        estimator, nightly.TrainSpec(batches(8), max_steps=3, saving_listeners=[
            tf.train.CheckpointSaverListener()]), nightly.EvalSpec(batches(8, 1)))
    assert 'W474 TrainSpec: saving_listeners are not called' in caplog.text
    np.testing.assert_allclose(estimator.get_variable_value('w'), after(3), rtol=1e-5)


@pytest.fixture(autouse=True)
def tf_config(monkeypatch):
    monkeypatch.delenv('TF_CONFIG', raising=False)


@pytest.mark.parametrize('kind', ['train_distribute', 'eval_distribute'])
def test_a_strategy_given_twice_is_one_clear_error(kind):
    strategy = STRATEGIES['OneDevice']()
    with pytest.raises(ete.ConfigError, match=f'E472 RunConfig: a strategy is given as {kind} or'):
        nightly.RunConfig(**{kind: strategy}, experimental_distribute=distribution(
            strategy, evaluation=strategy))


@pytest.mark.parametrize('job, strategy, master', [
    ('worker', None, 'grpc://a:1'), ('master', 'OneDevice', 'grpc://m:1')])
def test_without_a_strategy_or_with_a_master_the_estimator_runs_its_task_itself(
        monkeypatch, job, strategy, master):
    monkeypatch.setenv('TF_CONFIG', '{"cluster": {"%s": ["m:1"], "worker": ["a:1"]}, "task": '
                       '{"type": "%s", "index": 0}}' % (
                           'master' if job == 'master' else 'chief', job))
    config = nightly.RunConfig(
        eval_distribute=STRATEGIES['OneDevice'](),
        train_distribute=strategy and STRATEGIES[strategy]())
    assert (config.task_type, config.master, config.num_worker_replicas) == (job, master, 2)


def test_call_of_train_in_an_independent_worker_says_what_to_call(monkeypatch, tmp_path):
    monkeypatch.setenv('TF_CONFIG', '{"cluster": {"worker": ["a:1", "b:1"]}, '
                                    '"task": {"type": "worker", "index": 0}}')
    config = nightly.RunConfig(str(tmp_path), train_distribute=STRATEGIES['OneDevice'](),
                               eval_distribute=STRATEGIES['OneDevice']())
    estimator = nightly.Estimator(model_fn, config=config)
    for call in (estimator.train, estimator.evaluate):
        with pytest.raises(ete.ConfigError, match='E473 .* independent_worker over worker.  Call '
                                                  'train_and_evaluate.'):
            call(batches(8), steps=1)
