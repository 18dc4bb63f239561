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
    'v1 DNNRegressor': (TARGET, lambda c: v1.DNNRegressor(config=c, **hidden(words))),
    'v1 LinearRegressor': (TARGET, lambda c: v1.LinearRegressor(numbers(), config=c)),
    'v1 BaselineClassifier': (CLASS, lambda c: v1.BaselineClassifier(config=c)),
    'DNNClassifier': (CLASS, lambda c: v2.DNNClassifier(
        config=c, batch_norm=True, dropout=.1, **hidden())),
    'DNNRegressor': (TARGET, lambda c: v2.DNNRegressor(
        optimizer=lambda: keras.optimizers.legacy.Adam(.1), config=c, **hidden(words))),
    'LinearClassifier': (CLASS, lambda c: v2.LinearClassifier(numbers(), config=c)),
    'LinearRegressor': (TARGET, lambda c: v2.LinearRegressor(numbers(), config=c)),
    'DNNLinearCombinedRegressor': (
        TARGET, lambda c: v2.DNNLinearCombinedRegressor(
            config=c, linear_optimizer='SGD', dnn_optimizer='Adagrad', **both())),
    'LinearEstimator, BinaryClassHead': (
        CLASS, lambda c: v2.LinearEstimator(v2.BinaryClassHead(), numbers(), config=c)),
    'LinearSDCA': (CLASS, lambda c: v2.LinearClassifier(
        numbers(), config=c, optimizer=v2.experimental.LinearSDCA(
            'id', symmetric_l2_regularization=1.)))}


@pytest.mark.parametrize('name', soak_except(CANNED, 0, 2, 5, 10))
def test_a_canned_estimator_learns(tmp_path, name):
    labels, make = CANNED[name]
    features = dict(w=WORDS, id=np.arange(16).astype(str))
    estimator = make(config(tmp_path))
    estimator.train(batches(labels, **features), steps=30)
    results = estimator.evaluate(batches(labels, epochs=1, **features))
    knows_nothing = np.mean(TARGET ** 2) if labels is TARGET else np.log(2)
    assert results['average_loss'] < knows_nothing
    assert results['global_step'] == 30


def test_several_heads_learn_from_their_own_labels(tmp_path):
    heads = v2.MultiHead([v2.RegressionHead(name='a'), v2.MultiClassHead(3, name='b')])
    estimator = v2.DNNEstimator(heads, config=config(tmp_path), **hidden())
    labels = {'a': TARGET, 'b': CLASS}
    estimator.train(batches(labels), steps=2)
    results = estimator.evaluate(batches(labels, epochs=1))
    assert results['loss'] == pytest.approx(results['loss/a'] + results['loss/b'], rel=1e-5)


def test_a_recurrent_estimator_reads_sequences(tmp_path):
    estimator = v2.experimental.RNNEstimator(
        v2.BinaryClassHead(), [tf.feature_column.sequence_numeric_column('s')], units=[3],
        cell_type='lstm', config=config(tmp_path))

    def input_fn():
        return tf.data.Dataset.from_tensors(({'s': tf.sparse.from_dense(X)}, CLASS))
    estimator.train(input_fn)
    assert estimator.evaluate(input_fn)['global_step'] == 1
    assert len(list(estimator.predict(input_fn))) == 16


def test_kmeans_finds_two_heaps(tmp_path):
    points = np.float32([[0, 0], [0, 2], [9, 9], [9, 7]])
    estimator = v1.experimental.KMeans(2, use_mini_batch=False, seed=1, config=config(tmp_path))

    def input_fn():
        return tf.train.limit_epochs(tf.constant(points), num_epochs=1)
    for _ in range(4):
        estimator.train(input_fn)
    np.testing.assert_allclose(sorted(map(list, estimator.cluster_centers())), [[0, 1], [9, 8]],
                               atol=1e-4)
    assert estimator.score(input_fn) == pytest.approx(4, rel=1e-4)


@pytest.mark.parametrize('api', [v1, v2])
def test_baselines_learn_the_mean_from_arrays(tmp_path, api):
    labels = np.float32([[1], [3]])
    estimator = api.BaselineRegressor(config=config(tmp_path), optimizer=(
        tf.train.GradientDescentOptimizer(.25) if api is v1 else keras.optimizers.legacy.SGD(.25)))
    estimator.train(v1.inputs.numpy_input_fn(
        {'x': labels}, labels, batch_size=2, num_epochs=None, shuffle=False), steps=20)
    [row, _] = estimator.predict(v1.inputs.numpy_input_fn({'x': labels}, shuffle=False))
    assert row['predictions'] == pytest.approx(2, abs=1e-3)


def queued():
    """Inputs by queue runners."""
    x, y = tf.train.slice_input_producer([X, TARGET], shuffle=False)
    x, y = tf.train.batch([x, y], 8)
    return {'x': x}, y


@pytest.mark.parametrize('input_fn', [
    v1.inputs.numpy_input_fn({'x': X}, TARGET, batch_size=8, num_epochs=None, shuffle=False),
    queued])
def test_arrays_and_queues_train_as_a_dataset_does(tmp_path, input_fn):
    estimator = v1.Estimator(linear, config=config(tmp_path)).train(input_fn, steps=3)
    np.testing.assert_allclose(weights(estimator), after(3), rtol=1e-5)


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


@pytest.mark.parametrize('make', [
    lambda e: v1.experimental.stop_if_no_decrease_hook(e, 'loss', 0, **EVERY_STEP),
    lambda e: v1.experimental.stop_if_higher_hook(e, 'loss', 0, **EVERY_STEP),
    lambda e: v1.experimental.make_early_stopping_hook(
        e, lambda: bool(tf.train.latest_checkpoint(e.model_dir)), **EVERY_STEP)])
def test_early_stopping_hooks_stop_a_training(tmp_path, make):
    estimator = v1.Estimator(linear, config=config(tmp_path))
    os.makedirs(estimator.eval_dir())
    hook = make(estimator)
    estimator.train(batches(), steps=2, hooks=[hook])
    for _ in range(4):
        estimator.evaluate(batches(epochs=1))
        estimator.train(batches(), steps=2, hooks=[hook])
    assert estimator.get_variable_value('global_step') < 10


EVERY_STEP = dict(run_every_secs=None, run_every_steps=1)


@pytest.mark.parametrize('source', [
    lambda e: e.model_dir, lambda e: e.latest_checkpoint(),
    lambda e: os.fsdecode(e.export_saved_model(os.path.join(e.model_dir, 'export'), serving)),
    lambda e: v1.WarmStartSettings(e.model_dir, vars_to_warm_start='.*w'),
    lambda e: v1.WarmStartSettings(e.model_dir, vars_to_warm_start=['w'])])
def test_warm_starts_take_the_weights_of_another(tmp_path, source):
    estimator = v1.Estimator(frozen, config=config(tmp_path / 'b'),
                             warm_start_from=source(trained(tmp_path / 'a')))
    np.testing.assert_allclose(weights(estimator.train(batches(), steps=1)), after(3), rtol=1e-5)


def test_a_warm_start_moves_rows_to_where_a_new_vocabulary_has_their_words(tmp_path):
    for name, content in (('old', 'a\nb\n'), ('new', 'b\nc\na\n')):
        (tmp_path / name).write_text(content)
    table = 'linear/linear_model/w/weights'

    def make(name, size, **kwargs):
        column = tf.feature_column.categorical_column_with_vocabulary_file(
            'w', str(tmp_path / name), size)
        return v1.LinearRegressor([column], config=config(tmp_path / f'of-{name}'), **kwargs)

    def input_fn():
        return tf.data.Dataset.from_tensors(({'w': ['a', 'b']}, [[1.], [2.]]))
    first = make('old', 2).train(input_fn)
    second = make('new', 3, optimizer=tf.train.GradientDescentOptimizer(0.),
                  warm_start_from=v1.WarmStartSettings(
                      first.model_dir, var_name_to_vocab_info={table: v1.VocabInfo(
                          str(tmp_path / 'new'), 3, 0, str(tmp_path / 'old'))})).train(input_fn)
    a, b = first.get_variable_value(table)
    np.testing.assert_array_equal(second.get_variable_value(table), [b, [0], a])


def test_hooks_of_tensorflow_and_of_estimators_are_called(tmp_path):
    def model_fn(features, labels, mode):
        spec = linear(features, labels, mode)
        return spec._replace(training_hooks=[
            tf.train.LoggingTensorHook({'loss': spec.loss}, every_n_iter=2),
            tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path)),
            tf.train.GlobalStepWaiterHook(0), tf.train.StopAtStepHook(num_steps=3)])
    estimator = v1.Estimator(model_fn, config=config(tmp_path / 'm'))
    evaluator = v1.experimental.InMemoryEvaluatorHook(
        estimator, batches(epochs=1), every_n_iter=2)
    estimator.train(batches(), hooks=[evaluator])
    np.testing.assert_allclose(weights(estimator), after(3), rtol=1e-5)
    assert list(tmp_path.glob('timeline-*.json'))
    assert {0, 2, 3} <= {event.step for path in (tmp_path / 'm' / 'eval').iterdir()
                         for event in tf.train.summary_iterator(str(path))}


def test_training_stops_at_a_checkpoint_that_has_the_last_step(tmp_path):
    estimator = trained(tmp_path)
    hook = v1.experimental.make_stop_at_checkpoint_step_hook(
        estimator, 3, wait_after_file_check_secs=0)
    assert estimator.train(batches(), steps=5, hooks=[hook]).get_variable_value('global_step') <= 4


def test_metrics_are_added_and_may_be_keras_objects(tmp_path):
    def metric_fn(labels, predictions):
        mean = keras.metrics.Mean()
        mean.update_state(labels)
        return {'keras': mean, 'v1': tf.metrics.mean(labels)}

    def model_fn(features, labels, mode):
        return linear(features, labels, mode)._replace(predictions={'y': labels})
    estimator = v1.add_metrics(v1.Estimator(model_fn, config=config(tmp_path)), metric_fn)
    results = estimator.train(batches(), steps=1).evaluate(batches(epochs=1))
    assert results['keras'] == pytest.approx(TARGET.mean(), rel=1e-5)
    assert results['v1'] == pytest.approx(TARGET.mean(), rel=1e-5)
    assert {type(results[key]) for key in ('loss', 'v1')} == {np.float32}


def test_model_fns_use_tables_partitions_averages_summaries_and_other_checkpoints(tmp_path):
    other = trained(tmp_path / 'other')

    def model_fn(features, labels, mode):
        index = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            list('abcd'), tf.range(4, dtype=tf.int64)), -1)
        rows = tf.get_variable('rows', [4, 1], initializer=tf.zeros_initializer(),
                               partitioner=tf.fixed_size_partitioner(2), use_resource=False)
        w = tf.get_variable('w', [3, 1])
        tf.train.init_from_checkpoint(other.model_dir, {'w': 'w'})
        predicted = (tf.nn.embedding_lookup(rows, index.lookup(features['w']), 'div')
                     + tf.matmul(features['x'], w))
        loss = tf.reduce_mean((predicted - labels) ** 2)
        tf.summary.scalar('mine', loss)
        average = tf.train.ExponentialMovingAverage(.5)
        train_op = saver = None
        if mode == v1.ModeKeys.TRAIN:
            with tf.control_dependencies([tf.train.GradientDescentOptimizer(.1).minimize(
                    loss, tf.train.get_global_step(), [w])]):
                train_op = average.apply([w])
        else:
            saver = tf.train.Saver({average.average_name(w): w, 'rows': rows,
                                    'global_step': tf.train.get_global_step()})
        return v1.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops={'w': tf.metrics.mean(w)},
            scaffold=tf.train.Scaffold(saver=saver))
    estimator = v1.Estimator(model_fn, config=config(tmp_path / 'm', save_summary_steps=1))
    estimator.train(batches(w=WORDS), steps=1)
    average, now = (estimator.get_variable_value(name)
                    for name in ('w/ExponentialMovingAverage', 'w'))
    np.testing.assert_allclose(now, after(1, after(3)), rtol=1e-5)
    assert not np.allclose(average, now)
    assert estimator.evaluate(batches(epochs=1, w=WORDS))['w'] == pytest.approx(
        average.mean(), rel=1e-5)
    [events] = (tmp_path / 'm').glob('events.*')
    assert {'mine', 'loss'} <= {value.tag for event in tf.train.summary_iterator(str(events))
                                for value in event.summary.value}


def test_layers_and_optimizers_of_keras_train_and_save_by_objects(tmp_path):
    def model_fn(features, labels, mode):
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer='zeros')
        optimizer = keras.optimizers.legacy.SGD(.1)
        optimizer.iterations = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean((layer(features['x']) - labels) ** 2)
        [train_op] = optimizer.get_updates(loss, layer.trainable_variables)
        return v1.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops={
                'w': tf.metrics.mean(layer.kernel)}, scaffold=tf.train.Scaffold(
                    saver=tf2.train.Checkpoint(
                        layer=layer, optimizer=optimizer, step=optimizer.iterations)))
    estimator = v1.Estimator(model_fn, config=config(tmp_path))
    estimator.train(batches(), steps=2).train(batches(), steps=2)
    results = estimator.evaluate(batches(epochs=1))
    assert results['global_step'] == 4
    assert results['w'] == pytest.approx(after(2, after(2)).mean(), rel=1e-4)


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


def test_a_saved_model_becomes_an_estimator_that_trains_on(tmp_path):
    def supervised():
        return v1.experimental.build_raw_supervised_input_receiver_fn(
            {'x': tf.placeholder(tf.float32, [None, 3])},
            tf.placeholder(tf.float32, [None, 1]))()
    path = trained(tmp_path / 'm', steps=2).experimental_export_all_saved_models(
        str(tmp_path / 'e'), {v1.ModeKeys.TRAIN: supervised, v1.ModeKeys.EVAL: supervised,
                              v1.ModeKeys.PREDICT: serving})
    module = importlib.import_module(
        'tensorflow_estimator.python.estimator.canned.saved_model_estimator')
    estimator = module.SavedModelEstimator(os.fsdecode(path), str(tmp_path / 'on'))
    estimator.train(batches(), steps=2)
    np.testing.assert_allclose(weights(estimator), after(2, after(2)), rtol=1e-5)
    assert estimator.evaluate(batches(epochs=1))['global_step'] == 4
    assert len(list(estimator.predict(batches(epochs=1)))) == 16
