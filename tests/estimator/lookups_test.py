"""What a job looks up, beyond plain columns: whole jobs, small numbers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.parts import soak_except

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.runner import progress

TABLE = 'dense_features/f_embedding/embedding_weights'
STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 4


def test_weights_on_the_tensor_core_are_refused_before_input_fn_is_called(tmp_path):
    columns = [ete.embedding_column(
        tf.feature_column.weighted_categorical_column(jobs.identity_column('f'), 'w'), 2,
        embedding_lookup_device='tpu_tensor_core', tensor_core_shape=[None, 4])]
    estimator = jobs.estimator(
        jobs.linear_model_fn(columns), columns, jobs.run_config(tmp_path), batch_size=4)
    with pytest.raises(ete.UnsupportedError, match='E901 column "f_weighted_by_w_embedding'):
        estimator.train(lambda params: pytest.fail('called'), steps=1)


def test_weighted_and_sequence_columns_train_and_evaluate(tmp_path):
    """Sequences come to the model as activations and lengths, as SequenceFeatures wants them."""
    fc = tf.feature_column
    weighted = ete.embedding_column(fc.weighted_categorical_column(
        jobs.identity_column('liked'), 'how_much'), 2, 'sum')
    path = ete.embedding_column(fc.sequence_categorical_column_with_identity('path', 10), 2,
                                max_sequence_length=3)
    lengths = []

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures([weighted])(features)
        steps, length = tf.keras.experimental.SequenceFeatures([path])(features)
        lengths.append(length)
        logits = tf.layers.dense(tf.concat([net, tf.reduce_sum(steps, 1)], 1), 1)
        loss = tf.reduce_mean(tf.square(logits[:, 0] - labels))
        train_op = None
        if mode == 'train':
            train_op = ete.CrossShardOptimizer(tf.train.AdamOptimizer(.01)).minimize(
                loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)

    def input_fn(params):
        places = tf.constant([[0, 0], [0, 3], [1, 1]], tf.int64)
        batch = {'liked': tf.SparseTensor(places, tf.constant([1, 2, 3], tf.int64), [2, 4]),
                 'how_much': tf.SparseTensor(places, [.5, 2., 1.], [2, 4]),
                 'path': tf.SparseTensor(places, tf.constant([4, 5, 6], tf.int64), [2, 4])}
        assert params['batch_size'] == 2
        return tf.data.Dataset.from_tensors((batch, tf.ones([2]))).repeat()

    seen = []

    class Look(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(lengths[-1])

        def after_run(self, run_context, run_values):
            seen.append(run_values.results.tolist())

    estimator = jobs.estimator(model_fn, [weighted, path], jobs.run_config(tmp_path, 2, 2),
                               batch_size=8)
    estimator.train(input_fn, steps=4, hooks=[Look()])
    assert seen == [[3, 2]] * 2  # the id at place 3 of sample 0 is beyond the length
    assert progress.reports()[-1].counts['path'].truncated == 16
    assert estimator.evaluate(input_fn, steps=2)['global_step'] == 4
    assert {'sequence_features/path_embedding/embedding_weights/Adagrad',
            'dense_features/liked_weighted_by_how_much_embedding/embedding_weights'} <= set(
                dict(tf.train.list_variables(str(tmp_path))))


def test_the_gradient_multiplier_scales_the_gradients_of_tables_by_a_function_of_the_step(
        tmp_path):
    columns = [jobs.embedding('f', initializer=tf.ones_initializer())]
    changes = []
    for factor in (1., 2.):
        directory = tmp_path / str(factor)
        spec = ete.EmbeddingConfigSpec(
            columns, ete.StochasticGradientDescentParameters(.1),
            experimental_gradient_multiplier_fn=lambda step: factor * tf.cast(step + 1, tf.float32))
        ete.TPUEstimator(
            model_fn=jobs.linear_model_fn(columns), config=jobs.run_config(directory, 2, 1),
            train_batch_size=4, embedding_config_spec=spec).train(
                jobs.input_fn_of(STEPS), steps=1)
        changes.append(1 - jobs.stored(directory, TABLE))
    np.testing.assert_allclose(changes[1], 2 * changes[0], rtol=1e-5)
    assert changes[0].any()


def test_ids_out_of_range_are_dealt_with_as_the_config_says_and_reported(tmp_path):
    def input_fn(params):
        return tf.data.Dataset.from_tensors((
            {'f': np.array([3, 10, -4, 12]), 'g': np.array([1, 2, 3, 10])},
            np.ones(4, np.float32))).repeat()

    columns = [jobs.embedding('f'), jobs.embedding('g')]
    config = jobs.run_config(tmp_path, id_policy={'f': 'drop', 'g': 'mod'},
                             log_step_count_steps=1, save_summary_steps=1)
    jobs.estimator(jobs.linear_model_fn(columns), columns, config, batch_size=4).train(
        input_fn, steps=2)
    report = progress.reports()[-1]
    assert [(report.counts[name].seen, report.counts[name].out_of_range) for name in 'fg'] == [
        (2, 6), (8, 2)]
    assert report.last_line().endswith('ids missing: none, ids out of range: f 6, g 2')
    summaries = {value.tag: value.simple_value for path in tmp_path.glob('events*')
                 for event in tf.train.summary_iterator(str(path))
                 for value in event.summary.value}
    assert summaries['tpu_embedding/ids_out_of_range/f'] == 6
    for wrong, text in (
            ({'F': 'drop', 'ff': 'drop'}, 'E438 RunConfig.id_policy: .*are "f", "g"; got "F", '
             '"ff".  Did you mean "f"?'),
            ('ignore', 'E438 feature "f": the policy .*error, drop, clip')):
        with pytest.raises(ete.ConfigError, match=text):
            jobs.estimator(
                jobs.linear_model_fn(columns), columns, jobs.run_config(
                    tmp_path, id_policy=wrong), batch_size=4).train(input_fn, steps=1)


@pytest.mark.parametrize('pipelined', soak_except([False, True], 1))
@pytest.mark.parametrize('in_engine', soak_except([[], ['f']], 1))
@pytest.mark.parametrize('hosts, cores', soak_except([(1, 1), (2, 2)], 1))
def test_the_models_optimizer_trains_tables_on_the_tensor_core(
        tmp_path, hosts, cores, in_engine, pipelined):
    """Ids [1, 2, 3 | 5] of length 2: 3 is cut off; combiner mean; the table is a variable."""
    engine = [jobs.embedding(key, initializer=tf.zeros_initializer(),
                             embedding_lookup_device='tpu_embedding_core') for key in in_engine]
    dense = ete.embedding_column(
        jobs.identity_column('g'), 2, initializer=tf.ones_initializer(),
        embedding_lookup_device='tpu_tensor_core', tensor_core_shape=[None, 2])
    seen = []

    def model_fn(features, labels, mode, params):
        seen.append((features['g'], features['g__TENSOR_CORE_MASK']))
        net = tf.keras.layers.DenseFeatures([*engine, dense])(features)
        loss = tf.reduce_mean(tf.reduce_sum(net, 1)) / 4
        train_op = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1.)).minimize(
            loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)

    def input_fn(params):
        return tf.data.Dataset.from_tensors(({
            'f': [1, 2], 'g': tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0]], tf.constant(
                [1, 2, 3, 5], tf.int64), [2, 3])}, tf.ones([2]))).repeat()

    class Look(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(seen[-1])

        def after_run(self, run_context, run_values):
            ids, mask = run_values.results
            assert ids.tolist() == [[1, 2], [5, 0]] and mask.tolist() == [[1, 1], [1, 0]]

    estimator = ete.TPUEstimator(
        model_fn=model_fn, config=jobs.run_config(tmp_path, hosts, cores),
        train_batch_size=2 * hosts * cores, eval_batch_size=2 * hosts * cores,
        embedding_config_spec=ete.EmbeddingConfigSpec(
            [*engine, dense], ete.AdagradParameters(.5),
            pipeline_execution_with_tensor_core=pipelined))
    estimator.train(input_fn, steps=1, hooks=[Look()])
    table = 'dense_features/g_embedding/embedding_weights'
    stored = dict(tf.train.list_variables(str(tmp_path)))
    assert stored[table] == [10, 2] and f'{table}/Adagrad' not in stored
    # A quarter of the mean over 2 samples: 1/8 for id 5, half of that for 1 and 2 each.
    change = 1 - tf.train.load_variable(str(tmp_path), table)[:, 0]
    np.testing.assert_allclose(change, [0, 1/16, 1/16, 0, 0, 1/8, 0, 0, 0, 0], atol=1e-7)
    assert progress.reports()[-1].counts['g'].truncated == hosts * cores
    assert ('dense_features/f_embedding/embedding_weights/Adagrad' in stored) == bool(in_engine)
    # Each element is 1 - 1/16 of a mean of 2, and 1 - 1/8 of one; a sample has two of them.
    loss = 0.25 * (2 * 15/16 + 2 * 7/8) / 2
    if in_engine:
        loss += 0.25 * 2 * float(estimator.get_variable_value(
            'dense_features/f_embedding/embedding_weights')[1:3].mean())
    assert estimator.evaluate(input_fn, steps=1)['loss'] == pytest.approx(loss)


def test_shared_columns_on_the_tensor_core_train_on_several_cores_as_on_one(tmp_path):
    """Both features look ids up in one table of ones; the mean of a sample's two elements is 1.

    Each of 4 samples adds 1 / 4 per element and feature, spread over its ids.
    """
    columns = ete.shared_embedding_columns(
        [jobs.identity_column(key) for key in 'fg'], 2, initializer=tf.ones_initializer(),
        embedding_lookup_device='tpu_tensor_core', tensor_core_shape=[None, 3])

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        v = tf.get_variable('v', [], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.reduce_sum(net, 1)) * v
        train_op = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1.)).minimize(
            loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)

    steps = [{'f': [[1], [1, 2], [3], [4]], 'g': [[5], [5], [6, 7], [1]],
              'label': np.ones(4, np.float32)}]
    estimator = ete.TPUEstimator(
        model_fn=model_fn, config=jobs.run_config(tmp_path, 1, 2), train_batch_size=4,
        embedding_config_spec=ete.EmbeddingConfigSpec(columns, ete.AdagradParameters(.5)))
    estimator.train(jobs.input_fn_of(steps), steps=1)
    names = [name for name in estimator.get_variable_names() if name.endswith('embedding')]
    change = 1 - estimator.get_variable_value(names[0])[:, 0]
    samples = [0, 1 + .5 + 1, .5, 1, 1, 2, .5, .5, 0, 0]  # Id 1: alone, one of two, alone.
    np.testing.assert_allclose(change, np.array(samples) / 4, atol=1e-6)
    assert estimator.get_variable_value('v') == pytest.approx(1 - 4)  # 2 features of 2 elements


def test_a_feature_of_a_column_of_each_kind_is_refused(tmp_path):
    columns = [jobs.embedding('f'), jobs.embedding(
        'f', embedding_lookup_device='tpu_tensor_core', tensor_core_shape=[None, 2])]
    with pytest.raises(ete.ConfigError, match='E434 feature "f": .*multiple embeddings'):
        jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(tmp_path),
                       batch_size=4).train(jobs.input_fn_of(STEPS), steps=1)
