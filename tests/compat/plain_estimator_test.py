"""What plain Estimators do: sections 13 and 22.2 of the runner's specification, row by row."""

import importlib
import os

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from harness.parts import soak_except

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
    'v1 BaselineClassifier': (CLASS, lambda c: v1.BaselineClassifier(config=c)),
    'DNNClassifier': (CLASS, lambda c: v2.DNNClassifier(
        config=c, batch_norm=True, dropout=.1, **hidden())),
    'DNNRegressor': (TARGET, lambda c: v2.DNNRegressor(
        optimizer=lambda: keras.optimizers.legacy.Adam(.1), config=c, **hidden(words))),
    'LinearClassifier': (CLASS, lambda c: v2.LinearClassifier(numbers(), config=c)),
    'DNNLinearCombinedRegressor': (
        TARGET, lambda c: v2.DNNLinearCombinedRegressor(
            config=c, linear_optimizer='SGD', dnn_optimizer='Adagrad', **both())),
    'LinearEstimator, BinaryClassHead': (
        CLASS, lambda c: v2.LinearEstimator(v2.BinaryClassHead(), numbers(), config=c)),
    'LinearSDCA': (CLASS, lambda c: v2.LinearClassifier(
        numbers(), config=c, optimizer=v2.experimental.LinearSDCA(
            'id', symmetric_l2_regularization=1.)))}


@pytest.mark.parametrize('name', soak_except(CANNED, 0, 7))
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


def test_training_stops_at_a_checkpoint_that_has_the_last_step(tmp_path):
    estimator = trained(tmp_path)
    hook = v1.experimental.make_stop_at_checkpoint_step_hook(
        estimator, 3, wait_after_file_check_secs=0)
    assert estimator.train(batches(), steps=5, hooks=[hook]).get_variable_value('global_step') <= 4


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
