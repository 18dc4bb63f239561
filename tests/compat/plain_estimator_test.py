"""What plain Estimators do: sections 13 and 22.2 of the runner's specification, row by row."""

import importlib
import os
import types

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from harness.network import require_private_network
from harness.parts import soak_except
from harness.processes import free_addresses

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.errors import UnsupportedError

v1 = _legacy.load()
v2 = importlib.import_module('tensorflow_estimator._api.v2.estimator')
keras = tf2.keras
X = np.random.default_rng(0).normal(size=[16, 3]).astype(np.float32)
CLASS = (X[:, 0] > 0).astype(np.int64)
TARGET = X @ np.float32([[1], [-2], [.5]])
WORDS = np.array(['a', 'b', 'c', 'd'] * 4)


def batches(labels=TARGET, epochs=None, size=8, **features):
    """An input_fn: two batches of 8 per epoch."""
    return lambda: tf.data.Dataset.from_tensor_slices(
        ({'x': X, **features}, labels)).repeat(epochs).batch(size)


def config(directory, **kwargs):
    return v1.RunConfig(str(directory), tf_random_seed=7, **kwargs)


def linear(features, labels, mode):
    """The model whose training a reader can redo: `w -= .1 * 2 * x.T @ error / 8`."""
    return line(features, labels, mode, tf.train.GradientDescentOptimizer(.1))


def frozen(features, labels, mode):
    return line(features, labels, mode, tf.train.GradientDescentOptimizer(0.))


def line(features, labels, mode, optimizer):
    w = tf.get_variable('w', [3, 1], initializer=tf.zeros_initializer())
    predicted = tf.matmul(features['x'], w)
    if mode == v1.ModeKeys.PREDICT:
        return v1.EstimatorSpec(mode, predictions={'y': predicted}, export_outputs={
            'serving_default': v1.export.PredictOutput({'y': predicted})})
    loss = tf.reduce_mean((predicted - labels) ** 2)
    return v1.EstimatorSpec(mode, loss=loss,
                            train_op=optimizer.minimize(loss, tf.train.get_global_step()),
                            eval_metric_ops={'mean': tf.metrics.mean(predicted)})


def after(steps, w=(0., 0., 0.)):
    """The weights that so many steps lead to."""
    w = np.reshape(w, [3, 1])
    for step in range(steps):
        rows = slice(0, 8) if step % 2 == 0 else slice(8, 16)
        w = w - .1 * 2 * X[rows].T @ (X[rows] @ w - TARGET[rows]) / 8
    return np.float32(w)


def serving():
    x = tf.placeholder(tf.float32, [None, 3])
    return v1.export.ServingInputReceiver({'x': x}, {'x': x})


def trained(directory, steps=3, model_fn=linear, **kwargs):
    estimator = v1.Estimator(model_fn, config=config(directory, **kwargs))
    return estimator.train(batches(), steps=steps)


def weights(estimator):
    return estimator.get_variable_value('w')


def served(path):
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ['serve'], os.fsdecode(path)).signature_def[
            'serving_default']
        return session.run(signature.outputs['y'].name, {signature.inputs['x'].name: X})


@pytest.mark.parametrize('cls', [v1.Estimator, v2.Estimator])
def test_an_estimator_of_either_api_trains_resumes_evaluates_predicts_and_exports(tmp_path, cls):
    estimator = cls(linear, config=config(tmp_path / 'm'))
    estimator.train(batches(), steps=2)
    estimator.train(batches(), max_steps=4)
    assert estimator.get_variable_value('global_step') == 4
    np.testing.assert_allclose(weights(estimator), after(2, after(2)), rtol=1e-5)
    expected = X @ weights(estimator)
    results = estimator.evaluate(batches(epochs=1))
    np.testing.assert_allclose(
        [results['loss'], results['mean']], [np.mean((expected - TARGET) ** 2), expected.mean()],
        rtol=1e-4)
    np.testing.assert_allclose(
        [row['y'] for row in estimator.predict(batches(epochs=1))], expected, rtol=1e-5)
    path = estimator.export_saved_model(str(tmp_path / 'e'), serving)
    np.testing.assert_allclose(served(path), expected, rtol=1e-5)


def numbers():
    return [tf.feature_column.numeric_column('x', [3])]


def words():
    column = tf.feature_column.categorical_column_with_vocabulary_list('w', list('abcd'))
    return [*numbers(), tf.feature_column.embedding_column(column, 2)]


def hidden(columns=numbers, **kwargs):
    return dict(hidden_units=[4], feature_columns=columns(), **kwargs)


def both(**kwargs):
    return dict(linear_feature_columns=numbers(), dnn_feature_columns=words(),
                dnn_hidden_units=[4], **kwargs)


CANNED = {  # name: (labels, a function of the RunConfig)
    'v1 DNNClassifier': (CLASS, lambda c: v1.DNNClassifier(config=c, **hidden())),
    'DNNRegressor': (TARGET, lambda c: v2.DNNRegressor(
        optimizer=lambda: keras.optimizers.legacy.Adam(.1), config=c, **hidden(words))),
    'DNNLinearCombinedRegressor': (
        TARGET, lambda c: v2.DNNLinearCombinedRegressor(
            config=c, linear_optimizer='SGD', dnn_optimizer='Adagrad', **both())),
    'LinearEstimator, BinaryClassHead': (
        CLASS, lambda c: v2.LinearEstimator(v2.BinaryClassHead(), numbers(), config=c)),
    'LinearSDCA': (CLASS, lambda c: v2.LinearClassifier(
        numbers(), config=c, optimizer=v2.experimental.LinearSDCA(
            'id', symmetric_l2_regularization=1.)))}


@pytest.mark.parametrize('name', soak_except(CANNED, 0, 4))
def test_a_canned_estimator_learns(tmp_path, name):
    labels, make = CANNED[name]
    features = dict(w=WORDS, id=np.arange(16).astype(str))
    estimator = make(config(tmp_path))
    estimator.train(batches(labels, **features), steps=30)
    results = estimator.evaluate(batches(labels, epochs=1, **features))
    knows_nothing = np.mean(TARGET ** 2) if labels is TARGET else np.log(2)
    assert results['average_loss'] < knows_nothing
    assert results['global_step'] == 30


def test_train_and_evaluate_evaluates_each_checkpoint_exports_and_stops_early(tmp_path):
    estimator = v1.Estimator(linear, config=config(tmp_path, save_checkpoints_steps=2))
    stop = v1.experimental.stop_if_lower_hook(
        estimator, 'loss', float(np.mean((X @ after(4) - TARGET) ** 2)) + 1e-4,
        run_every_secs=None, run_every_steps=1)
    results, exports = v1.train_and_evaluate(
        estimator, v1.TrainSpec(batches(), max_steps=40, hooks=[stop]),
        v1.EvalSpec(batches(epochs=1), steps=None, throttle_secs=0, exporters=[
            v1.LatestExporter('latest', serving, exports_to_keep=1),
            v1.FinalExporter('final', serving),
            v1.BestExporter('best', serving, exports_to_keep=1)]))
    assert 4 <= results['global_step'] <= 6 and len(exports) == 3
    assert not (tmp_path / 'export' / 'final').exists()  # Step 40 was not reached.
    for name in ('latest', 'best'):
        [path] = (tmp_path / 'export' / name).iterdir()
        np.testing.assert_allclose(served(path), X @ weights(estimator), rtol=1e-5)


@pytest.mark.parametrize('source', [
    lambda e: os.fsdecode(e.export_saved_model(os.path.join(e.model_dir, 'export'), serving)),
    lambda e: v1.WarmStartSettings(e.model_dir, vars_to_warm_start=['w'])])
def test_warm_starts_take_the_weights_of_another(tmp_path, source):
    estimator = v1.Estimator(frozen, config=config(tmp_path / 'b'),
                             warm_start_from=source(trained(tmp_path / 'a')))
    np.testing.assert_allclose(weights(estimator.train(batches(), steps=1)), after(3), rtol=1e-5)


@pytest.mark.parametrize('optimizer, form', [
    (keras.optimizers.SGD, 'saver'), (keras.optimizers.legacy.SGD, 'checkpoint')])
def test_a_keras_model_becomes_an_estimator_that_trains_and_exports(tmp_path, optimizer, form):
    model = keras.Sequential([keras.layers.Dense(
        1, use_bias=False, kernel_initializer='zeros', input_shape=[3], name='y')])
    model.compile(optimizer(.1), 'mse')
    estimator = keras.estimator.model_to_estimator(
        model, config=config(tmp_path / 'm'), checkpoint_format=form)

    def input_fn(epochs=None):
        return lambda: batches(epochs=epochs)().map(lambda x, y: ({'y_input': x['x']}, y))
    estimator.train(input_fn(), steps=3)
    expected = X @ after(3)
    assert estimator.evaluate(input_fn(1))['loss'] == pytest.approx(
        np.mean((expected - TARGET) ** 2), rel=1e-4)
    np.testing.assert_allclose([row['y'] for row in estimator.predict(input_fn(1))], expected,
                               rtol=1e-4)


def test_a_model_of_keras_3_is_named_with_the_import_to_use():
    import keras as keras_3
    with pytest.raises(UnsupportedError, match='E938 model_to_estimator: .* got Sequential, of '
                       'Keras 3.  Make it of tf_keras: "import tf_keras as keras"'):
        _legacy.keras_module().model_to_estimator(keras_3.Sequential())


# With strategies, in this process and as a client of servers.

def sharded(input_context):
    """Batches of 4 of the samples of one of two workers."""
    return tf.data.Dataset.from_tensor_slices(({'x': X}, TARGET)).shard(
        input_context.num_input_pipelines, input_context.input_pipeline_id).repeat().batch(4)


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
    config = v1.RunConfig(
        str(tmp_path), train_distribute=STRATEGIES[name](),
        eval_distribute=None if 'ParameterServer' in name else STRATEGIES[name]())
    estimator = v1.Estimator(linear, config=config)
    results, _ = v1.train_and_evaluate(
        estimator, v1.TrainSpec(batches(), max_steps=5),
        v1.EvalSpec(batches(epochs=1), steps=None))
    np.testing.assert_allclose(estimator.get_variable_value('w'), after(5), rtol=1e-5)
    assert results['loss'] == loss_of(after(5)) and results['global_step'] == 5


def test_two_replicas_train_as_one_does_with_both_of_their_batches(tmp_path):
    session_config = tf.ConfigProto(device_count={'CPU': 2})
    with tf.Graph().as_default():
        strategy = tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
    estimator = v1.Estimator(linear, config=v1.RunConfig(
        str(tmp_path), train_distribute=strategy, session_config=session_config))
    estimator.train(batches(size=4), steps=5)
    np.testing.assert_allclose(estimator.get_variable_value('w'), after(5), rtol=1e-5)


def test_a_tpu_estimator_without_tpu_takes_a_strategy(tmp_path):
    estimator = ete.TPUEstimator(
        lambda features, labels, mode, params: linear(features, labels, mode), use_tpu=False,
        config=ete.RunConfig(model_dir=str(tmp_path), train_distribute=STRATEGIES['Mirrored']()),
        train_batch_size=8)
    estimator.train(lambda params: batches(size=params['batch_size'])(), steps=3)
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
    config = v1.RunConfig(
        str(directory), experimental_distribute=distribution(strategy, cluster, evaluation))
    servers = [tf.train.Server(cluster, job, index) for job, count in tasks.items()
               for index in range(count)]
    return v1.Estimator(linear, config=config), servers


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
        estimator.train(batches(), steps=1)
    v1.train_and_evaluate(
        estimator, v1.TrainSpec(batches(), max_steps=3, saving_listeners=[
            tf.train.CheckpointSaverListener()]), v1.EvalSpec(batches(epochs=1)))
    assert 'W474 TrainSpec: saving_listeners are not called' in caplog.text
    np.testing.assert_allclose(estimator.get_variable_value('w'), after(3), rtol=1e-5)


@pytest.fixture(autouse=True)
def tf_config(monkeypatch):
    monkeypatch.delenv('TF_CONFIG', raising=False)


@pytest.mark.parametrize('kind', ['train_distribute', 'eval_distribute'])
def test_a_strategy_given_twice_is_one_clear_error(kind):
    strategy = STRATEGIES['OneDevice']()
    with pytest.raises(ete.ConfigError, match=f'E472 RunConfig: a strategy is given as {kind} or'):
        v1.RunConfig(**{kind: strategy}, experimental_distribute=distribution(
            strategy, evaluation=strategy))


def test_call_of_train_in_an_independent_worker_says_what_to_call(monkeypatch, tmp_path):
    monkeypatch.setenv('TF_CONFIG', '{"cluster": {"worker": ["a:1", "b:1"]}, '
                                    '"task": {"type": "worker", "index": 0}}')
    config = v1.RunConfig(str(tmp_path), train_distribute=STRATEGIES['OneDevice'](),
                          eval_distribute=STRATEGIES['OneDevice']())
    estimator = v1.Estimator(linear, config=config)
    for call in (estimator.train, estimator.evaluate):
        with pytest.raises(ete.ConfigError, match='E473 .* independent_worker over worker.  Call '
                                                  'train_and_evaluate.'):
            call(batches(), steps=1)
