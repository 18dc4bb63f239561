"""What an exported model promises: it gives what predict gives, on any CPU, without this package.

The same graphs serve evaluation and prediction without the engine, so these are here too.
"""

import pathlib
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs, tpu_on_cpu
from harness.parts import soak_except
from tensorflow.core.protobuf import saved_model_pb2

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.runner import progress

ROWS, BATCH = 13, 6
TABLE = 'dense_features/one_embedding/embedding_weights'
LISTS = {'one': [[1], [12], [0], [7], [5], [3]],
         'matrix': [[4, 5], [6, 0], [0, 0], [0, 2], [12, 11], [1, 1]],
         'words': [['a', 'b'], ['x', ''], ['', ''], ['c', 'c'], ['b', ''], ['', 'a']],
         'weighted': [[1, 2], [3], [], [12], [4, 4], [0, 6]],
         'left': [[1], [2, 3], [], [12], [5, 5], [9]],
         'right': [[10, 4], [0], [3], [], [8, 1, 2], [11]],
         'walk': [[1, 2, 3, 4], [5], [], [6, 7], [8, 9, 10], [12, 0]]}


def features_of(samples):
    """Some of the samples, each feature in its own form, as arrays and SparseTensorValues."""
    values = {key: [lists[sample] for sample in samples] for key, lists in LISTS.items()}
    features = {key: _sparse(values[key]) for key in ('weighted', 'left', 'right', 'walk')}
    features['weight'] = _sparse([[.5 + one for one in ids] for ids in values['weighted']],
                                 np.float32)
    features['one'] = np.array(values['one'], np.int64)[:, 0]
    features['matrix'] = np.array(values['matrix'], np.int64)
    features['words'] = np.array(values['words'])
    return features


def _sparse(lists, kind=np.int64):
    places = [(row, at) for row, ids in enumerate(lists) for at in range(len(ids))]
    return tf.SparseTensorValue(
        np.array(places, np.int64).reshape(-1, 2), np.array(sum(lists, []), kind),
        np.array([len(lists), max(map(len, lists), default=0)], np.int64))


def make_columns():
    identity, column = jobs.identity_column, ete.embedding_column
    return [
        column(identity('one', ROWS), 2, None), column(identity('matrix', ROWS), 3, 'mean'),
        column(tf.feature_column.categorical_column_with_vocabulary_list(
            'words', ['a', 'b', 'c']), 2, 'sqrtn'),
        column(tf.feature_column.weighted_categorical_column(
            identity('weighted', ROWS), 'weight'), 2, 'mean'),
        *ete.shared_embedding_columns(
            [identity('left', ROWS), identity('right', ROWS)], 2, 'sqrtn'),
        column(tf.feature_column.sequence_categorical_column_with_identity('walk', ROWS), 2, 'sum',
               max_sequence_length=3)]


def model_fn_of(columns, seen=None):
    def model_fn(features, labels, mode, params):
        if seen is not None:
            seen.append((mode, dict(params)))
        net = tf.keras.layers.DenseFeatures(columns[:-1])(features)
        walk, lengths = tf.keras.experimental.SequenceFeatures(columns[-1:])(features)
        walk = tf.reduce_sum(walk * tf.constant([[[1.], [2.], [3.]]]), 1)
        net = tf.concat([net, walk, tf.cast(lengths, tf.float32)[:, None]], 1)
        logits = tf.layers.dense(net, 1, name='w', kernel_initializer=tf.ones_initializer())
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions={'net': net, 'y': logits})
        loss = tf.reduce_mean(tf.square(logits[:, 0] - labels))
        optimizer = tf.train.GradientDescentOptimizer(.01)
        if params['use_tpu']:
            optimizer = ete.CrossShardOptimizer(optimizer)
        return ete.TPUEstimatorSpec(
            mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()),
            eval_metrics=(lambda y: {'y': tf.metrics.mean(y)}, [logits]))
    return model_fn


def input_fn(params):
    """All samples once, dealt to hosts and, if it trains, for ever."""
    context = params.get('context')
    hosts, host = (context.num_hosts, context.current_host) if context else (1, 0)
    mine = range(host, len(LISTS['one']), hosts)
    size = params['batch_size']
    batches = [features_of(mine[at:at + size]) for at in range(0, len(mine), size)]
    datasets = [tf.data.Dataset.from_tensors({
        key: tf.SparseTensor(*value) if isinstance(value, tf.SparseTensorValue) else value
        for key, value in batch.items()}) for batch in batches]
    dataset = datasets[0]
    for other in datasets[1:]:
        dataset = dataset.concatenate(other)
    return dataset


def labelled_input_fn(params):
    return input_fn(params).map(lambda features: (
        features, tf.ones_like(features['one'], tf.float32))).repeat()


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """Gives an estimator of a model that was trained for three steps, in a folder of its own.

    A training is made once for each topology, its folder copied: tests only look at it.
    """
    made = {}

    def make(model_dir, hosts, strategy, model_fn=model_fn_of):
        if (hosts, strategy) not in made:
            made[hosts, strategy] = tmp_path_factory.mktemp('trained') / 'job'
            estimator_of(made[hosts, strategy], hosts, strategy).train(labelled_input_fn, steps=3)
        shutil.copytree(made[hosts, strategy], model_dir, dirs_exist_ok=True)
        return estimator_of(model_dir, hosts, strategy, model_fn)
    return make


def estimator_of(model_dir, hosts, strategy, model_fn=model_fn_of):
    columns = make_columns()
    return jobs.estimator(model_fn(columns), columns, jobs.run_config(model_dir, hosts),
                          batch_size=BATCH, strategy=strategy)


def receiver():
    """Placeholders for the features as they are."""
    features = {}
    for key, value in features_of(range(2)).items():
        if isinstance(value, tf.SparseTensorValue):
            features[key] = tf.sparse_placeholder(value.values.dtype, [None, None], name=key)
        else:
            kind = tf.string if key == 'words' else tf.int64
            features[key] = tf.placeholder(kind, [None, *value.shape[1:]], name=key)
    return _legacy.load().export.ServingInputReceiver(features, features)


def served(path, features, tags=('serve',)):
    """What the exported model gives, run through the API of TensorFlow 1."""
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, tags, path).signature_def['serving_default']
        feeds = {}
        for key, info in signature.inputs.items():
            if info.WhichOneof('encoding') == 'coo_sparse':
                sparse = info.coo_sparse
                for name, value in zip((sparse.indices_tensor_name, sparse.values_tensor_name,
                                        sparse.dense_shape_tensor_name), features[key]):
                    feeds[name] = value
            else:
                feeds[info.name] = features[key]
        assert not any('/part_' in variable.op.name for variable in tf.global_variables())
        return session.run({key: info.name for key, info in signature.outputs.items()}, feeds)


def served_by_tpu(path, features):
    """What the TPU graph of the exported model gives, run without a TPU."""
    return served(tpu_on_cpu.runnable(path, f'{path}-on-cpu'), features, ('serve', 'tpu'))


def served_v2(path, features):
    """The same through the API of TensorFlow 2, eagerly."""
    with tf.init_scope():
        function = tf.compat.v2.saved_model.load(path, ['serve']).signatures['serving_default']
        arguments = {}
        for key, value in features.items():
            if isinstance(value, tf.SparseTensorValue):
                arguments.update({f'{key}_indices': tf.constant(value.indices),
                                  f'{key}_values': tf.constant(value.values),
                                  f'{key}_dense_shape': tf.constant(value.dense_shape)})
            else:
                arguments[key] = tf.constant(value)
        return {key: value.numpy() for key, value in function(**arguments).items()}


def assert_same(actual, rows):
    for key in ('net', 'y'):
        np.testing.assert_allclose(actual[key], [row[key] for row in rows], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize('strategy', soak_except(['div', 'mod'], 1))
@pytest.mark.parametrize('hosts', soak_except([1, 2, 3], 1))
def test_an_exported_model_gives_what_predict_gives_in_both_apis_and_on_a_tpu(
        tmp_path, trained, hosts, strategy, monkeypatch):
    seen, lines = [], []
    estimator = trained(
        tmp_path / 'job', hosts, strategy, lambda columns: model_fn_of(columns, seen))
    rows = list(estimator.predict(input_fn))
    at = [sample for step in range(0, 6, BATCH) for host in range(hosts)
          for sample in range(host, 6, hosts)]
    monkeypatch.setattr(progress, '_sink', lines.append)
    path = estimator.export_saved_model(str(tmp_path / 'export'), receiver).decode()
    assert lines == ['export: a graph for a TPU, tagged "serve" and "tpu", beside that for a CPU, '
                     'which TensorFlow 2 loads with tags=["serve"]']
    assert pathlib.Path(path).name.isdigit() and estimator.params == {}
    # As in the original: no batch size, no context, no TPU.
    assert seen[-2:] == [('infer', {'use_tpu': False})] * 2
    saved = saved_model_pb2.SavedModel.FromString(pathlib.Path(path, 'saved_model.pb').read_bytes())
    assert [list(graph.meta_info_def.tags) for graph in saved.meta_graphs] == [
        ['serve'], ['serve', 'tpu']]
    assert_same(served(path, features_of(at)), rows)
    assert_same(served_v2(path, features_of(at)), rows)
    assert_same(served_by_tpu(path, features_of(at)), rows)
    stored = tf.train.load_variable(f'{path}/variables/variables', TABLE)
    np.testing.assert_array_equal(
        stored, jobs.stored(tmp_path / 'job', TABLE, strategy, hosts))


def test_tables_and_slots_of_all_modes_of_an_export_are_in_the_order_of_ids(tmp_path):
    columns = [jobs.embedding('one', ROWS)]

    def model_fn(features, labels, mode, params):
        def make_optimizer():  # Its slots are called as those of the engine.
            optimizer = tf.train.AdagradOptimizer(.1, initial_accumulator_value=.1)
            return ete.CrossShardOptimizer(optimizer) if params['use_tpu'] else optimizer
        return jobs.linear_model_fn(columns, make_optimizer)(features, labels, mode, params)

    estimator = jobs.estimator(model_fn, columns, jobs.run_config(tmp_path / 'job', 3),
                               strategy='mod', batch_size=BATCH)
    estimator.train(jobs.input_fn_of([{'one': np.arange(6) * 2, 'label': np.ones(6, np.float32)}]),
                    steps=1)
    export = _legacy.load().export
    ids, labels = {'one': tf.constant([1], tf.int64)}, tf.constant([1.])
    supervised = _legacy.load().experimental.build_raw_supervised_input_receiver_fn(ids, labels, 1)
    keys = _legacy.load().ModeKeys
    path = estimator.experimental_export_all_saved_models(str(tmp_path / 'export'), {
        keys.TRAIN: supervised, keys.EVAL: supervised,
        keys.PREDICT: export.build_raw_serving_input_receiver_fn(ids, 1)}).decode()
    for name in (TABLE, f'{TABLE}/Adagrad'):
        np.testing.assert_array_equal(
            tf.train.load_variable(f'{path}/variables/variables', name),
            jobs.stored(tmp_path / 'job', name, 'mod', 3))
    table = jobs.stored(tmp_path / 'job', TABLE, 'mod', 3)
    given = {'one': np.array([4])}
    np.testing.assert_allclose(served(path, given)['net'], table[[4]], rtol=1e-6)


@pytest.mark.parametrize('strategy', soak_except(['div', 'mod'], 1))
def test_ids_out_of_range_meet_their_policy_in_the_exported_graph_too(tmp_path, strategy):
    columns = [jobs.embedding('f', ROWS), jobs.embedding('g', ROWS), jobs.embedding('h', ROWS)]
    policy = {'f': 'drop', 'g': 'clip', 'h': 'mod'}
    data = {key: np.array([1, 13, 20, -1]) for key in policy}
    estimator = jobs.estimator(
        jobs.linear_model_fn(columns), columns, jobs.run_config(tmp_path, 2, id_policy=policy),
        strategy=strategy, batch_size=8)
    estimator.train(jobs.input_fn_of([{
        **{key: np.tile(value, 2) for key, value in data.items()},
        'label': np.ones(8, np.float32)}]), steps=1)
    rows = list(estimator.predict(lambda params: tf.data.Dataset.from_tensors(data).take(
        1 - params['context'].current_host)))
    path = estimator.export_saved_model(str(tmp_path / 'export'), raw(data)).decode()
    for serve in (served, served_by_tpu):
        np.testing.assert_allclose(
            serve(path, data)['net'], [row['net'] for row in rows], rtol=1e-6)
    strict = jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(tmp_path, 2),
                            strategy=strategy)
    path = strict.export_saved_model(str(tmp_path / 'export'), raw(data)).decode()
    for serve in (served, served_by_tpu):
        with pytest.raises(tf.errors.InvalidArgumentError, match='E501.*feature .*ids must be in'):
            serve(path, data)


def raw(data):
    """A receiver of dense features, any number of samples."""
    return lambda: _legacy.load().export.build_raw_serving_input_receiver_fn(
        {key: tf.constant(value) for key, value in data.items()})()


@pytest.mark.parametrize('strategy', soak_except(['div', 'mod'], 1))
def test_a_model_of_configs_by_name_trains_with_an_optimizer_per_table_and_exports_them(
        tmp_path, strategy):
    """Activations are in features; variables are called as the tables are."""
    def model_fn(features, labels, mode, params):
        net = tf.concat([features['f'], features['one'],
                         tf.reduce_sum(features['walk'] * [[[1.], [2.]]], 1)], 1)
        length = features['walk_seq_length_']
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions={'net': net, 'length': length})
        w = tf.get_variable('w', [5, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(net, w)[:, 0] - labels))
        train_op = None if mode == 'eval' else ete.CrossShardOptimizer(
            tf.train.GradientDescentOptimizer(.1)).minimize(loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = ete.TPUEstimator(
        model_fn, config=jobs.run_config(tmp_path / 'job', 2), train_batch_size=4,
        eval_batch_size=4, predict_batch_size=4, embedding_config_spec=ete.EmbeddingConfigSpec(
            partition_strategy=strategy, optimization_parameters=ete.FtrlParameters(.1),
            table_to_config_dict={
                't': ete.TableConfig(ROWS, 2, combiner='mean', learning_rate=.5),
                'item': ete.TableConfig(9, 1, combiner=None,
                                        optimization_parameters=ete.MomentumParameters(.1, .9))},
            feature_to_config_dict={'f': ete.FeatureConfig('t'), 'one': ete.FeatureConfig('item'),
                                    'walk': ete.FeatureConfig('t', max_sequence_length=2)}))
    data = {'f': np.array([[1, 2], [0, 0], [3, 0], [12, 12]]), 'one': np.array([0, 8, 8, 1]),
            'walk': np.array([[5, 6, 7], [0, 0, 0], [0, 3, 0], [11, 0, 0]])}
    steps = jobs.input_fn_of([{**data, 'label': np.ones(4, np.float32)}] * 2)
    estimator.train(steps, steps=2)
    estimator.train(steps, steps=1)
    assert estimator.evaluate(steps, steps=1)['global_step'] == 3
    stored = dict(tf.train.list_variables(str(tmp_path / 'job')))
    assert {name: shape for name, shape in stored.items() if name[0] in 'ti'} == {
        't': [ROWS, 2], 't/Ftrl': [ROWS, 2], 't/Ftrl_1': [ROWS, 2], 'item': [9, 1],
        'item/Momentum': [9, 1]}
    rows = list(estimator.predict(lambda params: tf.data.Dataset.from_tensor_slices(data).batch(
        params['batch_size']).take(2 - 2 * params['context'].current_host)))
    path = estimator.export_saved_model(str(tmp_path / 'export'), raw(data)).decode()
    for actual in (served(path, data), served_by_tpu(path, data)):
        for key in ('net', 'length'):
            np.testing.assert_allclose(actual[key], [row[key] for row in rows], rtol=1e-6)
    for table in ('t', 'item'):
        np.testing.assert_array_equal(
            tf.train.load_variable(f'{path}/variables/variables', table),
            jobs.stored(tmp_path / 'job', table, strategy, 2))


def test_ids_for_a_vocabulary_are_refused_where_the_column_would_map_them(tmp_path):
    columns = [ete.embedding_column(tf.feature_column.categorical_column_with_vocabulary_list(
        'f', [10, 20, 30]), 2)]
    estimator = jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(tmp_path),
                               batch_size=2)
    estimator.train(jobs.input_fn_of([{'f': np.array([0, 2]), 'label': np.ones(2, np.float32)}]),
                    steps=1)
    with pytest.raises(ete.UnsupportedError, match='E919 feature "f"'):
        estimator.export_saved_model(str(tmp_path / 'export'), raw({'f': np.array([0])}))


def test_an_export_needs_a_checkpoint_or_something_to_start_from(tmp_path, trained):
    columns = make_columns()
    with pytest.raises(ValueError, match=f"Couldn't find trained model at {tmp_path}."):
        jobs.estimator(model_fn_of(columns), columns, jobs.run_config(tmp_path)
                       ).export_saved_model(str(tmp_path / 'export'), receiver)
    trained(tmp_path / 'job', 2, 'mod')
    path = jobs.estimator(
        model_fn_of(columns), columns, jobs.run_config(tmp_path / 'other'),
        warm_start_from=str(tmp_path / 'job')).export_saved_model(
            str(tmp_path / 'export'), receiver).decode()
    np.testing.assert_array_equal(tf.train.load_variable(f'{path}/variables/variables', TABLE),
                                  jobs.stored(tmp_path / 'job', TABLE, 'mod', 2))


def without_tpu(model_dir, **kwargs):
    columns = make_columns()
    return ete.TPUEstimator(
        model_fn_of(columns), config=jobs.run_config(model_dir), use_tpu=False,
        eval_batch_size=BATCH, predict_batch_size=BATCH, **kwargs)


@pytest.mark.parametrize('strategy', soak_except(['div', 'mod'], 1))
def test_what_runs_without_tpu_reads_mod_rows_of_several_hosts_as_well(tmp_path, trained, strategy):
    estimator = trained(tmp_path, 3, strategy)

    def sparse_input_fn(params):  # 0 in a matrix is an id there, as in the original.
        def clean(features):
            matrix = features['matrix']
            places = tf.where(tf.not_equal(matrix, 0))
            return {**features, 'matrix': tf.SparseTensor(
                places, tf.gather_nd(matrix, places), tf.shape(matrix, out_type=tf.int64)),
                'walk': tf.sparse.slice(features['walk'], [0, 0], [BATCH, 3])}
        return input_fn(params).map(clean)

    by_one = {float(row['net'][0]): row for row in estimator.predict(input_fn)}
    rows = list(without_tpu(tmp_path).predict(sparse_input_fn))
    assert len(rows) == len(by_one) == 6
    assert_same({key: [by_one[min(by_one, key=lambda one: abs(one - row['net'][0]))][key]
                       for row in rows] for key in ('net', 'y')}, rows)
    labelled = without_tpu(tmp_path).evaluate(lambda params: sparse_input_fn(params).map(
        lambda features: (features, tf.ones([BATCH]))))
    assert labelled['y'] == pytest.approx(np.mean([row['y'] for row in rows]), rel=1e-6)
    path = without_tpu(tmp_path).export_saved_model(str(tmp_path / 'export'), receiver).decode()
    np.testing.assert_array_equal(tf.train.load_variable(f'{path}/variables/variables', TABLE),
                                  jobs.stored(tmp_path, TABLE, strategy, 3))


def test_a_plain_estimator_is_exported_by_the_function_of_the_original(tmp_path):
    from estimator_tpu_embedding.estimator.tpu_estimator import export_estimator_savedmodel
    from estimator_tpu_embedding.estimator.tpu_estimator_names import BatchConfig
    assert BatchConfig(1, 2, 3, [2]) == (1, 2, 3, [2], 100)

    def model_fn(features, labels, mode, params):
        assert params == {'mine': 7} or params == {'mine': 7, 'use_tpu': False}
        y = features['x'] * tf.get_variable('w', [], initializer=tf.constant_initializer(3.))
        if mode == 'infer':
            return _legacy.load().EstimatorSpec(mode, predictions={'y': y})
        return _legacy.load().EstimatorSpec(
            mode, loss=tf.reduce_sum(y), train_op=tf.train.get_global_step().assign_add(1))

    plain = _legacy.load().Estimator(model_fn, str(tmp_path / 'job'), params={'mine': 7})
    plain.train(lambda: tf.data.Dataset.from_tensors(({'x': [1.]}, [1.])), steps=1)
    path = export_estimator_savedmodel(
        plain, str(tmp_path / 'export'), raw({'x': np.float32([1])})).decode()
    for serve in (served, served_by_tpu):
        assert serve(path, {'x': [1., 2.]})['y'].tolist() == [3., 6.]
