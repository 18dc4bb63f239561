"""The TPU graph of an export is the original's; nothing here runs on a TPU."""

import json
import pathlib
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs, tpu_exports, tpu_graphs, tpu_on_cpu
from harness.processes import ROOT, run_harness, run_python
from tensorflow.core.protobuf import saved_model_pb2

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy, _tf
from estimator_tpu_embedding.estimator import tf_tpu
from estimator_tpu_embedding.estimator.tpu_estimator_names import (
    BatchConfig,
    model_fn_inference_on_tpu,
)

ROWS, TABLE = 10, 'dense_features/f_embedding/embedding_weights'
GOLDENS = ROOT / 'tests' / 'golden' / 'tpu_exports.json'


def test_every_node_is_that_of_tensorflow_2_15():
    theirs = tpu_graphs.unpacked(json.loads(GOLDENS.read_text()))
    done = run_harness('tpu_export_job')
    assert done.returncode == 0
    ours = json.loads(done.stdout.splitlines()[-1])
    assert ours.keys() == theirs.keys() == tpu_exports.JOBS.keys()
    assert {name: different for name in ours
            if (different := tpu_graphs.differences(ours[name], theirs[name]))} == {}


def test_a_difference_within_a_function_is_seen(tmp_path):
    summaries = []
    for factor in (2., 3.):
        def double(x, factor=factor):
            return x * factor

        with tf.Graph().as_default() as graph:
            tf.function(double)(tf.placeholder(tf.float32, [1], 'x'))
            summaries.append(tpu_graphs.of_meta_graph(tf.train.export_meta_graph(graph=graph)))
    assert any('Const' in text for text in tpu_graphs.differences(*summaries))


def model_fn_of(columns, predict=None):
    """A model that looks up ids; `predict` makes more predictions of features, or a spec."""
    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        if mode == 'infer':
            found = predict(features) if predict else {}
            return found if isinstance(found, tuple) else ete.TPUEstimatorSpec(
                mode, predictions={'net': net, **found})
        return jobs.trained_spec(mode, tf.reduce_sum(net))
    return model_fn


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """Gives estimators with the checkpoint of one training; tests only look at it."""
    columns = [jobs.embedding('f', ROWS)]
    model_dir = tmp_path_factory.mktemp('trained')

    def make(predict=None, **more):
        return jobs.estimator(model_fn_of(columns, predict), columns, jobs.run_config(model_dir, 2),
                              strategy=more.pop('strategy', 'mod'), **more)

    make().train(jobs.input_fn_of([{'f': np.arange(8), 'label': np.zeros(8)}]), steps=1)
    return make


def receiver(shape=(None,)):
    features = {'f': tf.placeholder(tf.int64, shape)}
    return _legacy.load().export.ServingInputReceiver(features, features)


def tags(path):
    saved = saved_model_pb2.SavedModel.FromString(pathlib.Path(path, 'saved_model.pb').read_bytes())
    return [list(graph.meta_info_def.tags) for graph in saved.meta_graphs]


def served(path, tmp_path, ids):
    """What the TPU graph computes of some ids."""
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(
            session, ['serve', 'tpu'], tpu_on_cpu.runnable(path, tmp_path / 'on_cpu')
        ).signature_def['serving_default']
        return session.run({key: info.name for key, info in signature.outputs.items()},
                           {signature.inputs['f'].name: ids})


def test_a_graph_for_the_tpu_alone_has_the_rows_in_the_order_of_ids(tmp_path, trained):
    estimator = trained(lambda features: {'f': features['f']}, export_to_cpu=False)
    path = estimator.export_saved_model(str(tmp_path / 'export'), receiver).decode()
    assert tags(path) == [['serve', 'tpu']]
    table = jobs.stored(estimator.model_dir, TABLE, 'mod', 2)
    np.testing.assert_array_equal(
        tf.train.load_variable(f'{path}/variables/variables', TABLE), table)
    found = served(path, tmp_path, [3, 0, 9])
    np.testing.assert_array_equal(found['net'], table[[3, 0, 9]])
    np.testing.assert_array_equal(found['f'], [3, 0, 9])  # A feature that is given back.


LOADED = '''
import sys
import estimator_tpu_embedding
estimator_tpu_embedding.install()
import tensorflow as tf
for path in sys.argv[1:]:
    for tags in (['serve', 'tpu'], ['serve']):
        def in_session():
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                tf.compat.v1.saved_model.load(session, tags, path)
        for load in (in_session, lambda: tf.saved_model.load(path, tags)):
            try:
                load()
                print(tags)
            except Exception as error:
                print(f'{type(error).__name__} {error}')
'''


def test_without_a_tpu_loading_and_inspect_say_what_it_needs(tmp_path, trained):
    both, alone = (
        trained(export_to_cpu=cpu).export_saved_model(str(tmp_path / str(cpu)), receiver).decode()
        for cpu in (True, False))
    done = run_python('-c', LOADED, both, alone, loaded=True)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        f"UnsupportedError E942 SavedModel {both}: its graph with the tags ['serve', 'tpu'] needs "
        "a TPU; got a TensorFlow without TPU.  Load the graph with the tag \"serve\"."] * 2
    assert lines[2:4] == ["['serve']"] * 2
    assert lines[4] == lines[5] and lines[4].endswith(
        'Export it without export_to_cpu=False: then it also has a graph for CPUs.')
    done = run_python('-m', 'estimator_tpu_embedding', 'inspect', alone)
    assert done.returncode == 2 and 'tagged "serve" and "tpu" needs a TPU to load' in done.stderr


@pytest.mark.parametrize('flags, want', [
    ({'export_to_tpu': False}, [['serve']]),
    ({'use_tpu': False, 'strategy': 'div'}, [['serve'], ['serve', 'tpu']])])
def test_flags_choose_the_graphs_as_in_the_original(tmp_path, trained, flags, want):
    path = trained(**flags).export_saved_model(str(tmp_path), receiver).decode()
    assert tags(path) == want


def test_dense_ids_are_batched_as_the_engine_reads_them(tmp_path):
    columns = [jobs.embedding('f', ROWS)]

    def inner(features, mode):
        net = tf.feature_column.input_layer(features, columns)
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions={'net': net})
        return jobs.trained_spec(mode, tf.reduce_sum(net))

    def model_fn(features, labels, mode, params):
        if mode == 'infer' and params['use_tpu']:
            return model_fn_inference_on_tpu(inner, features, labels, None, params,
                                             BatchConfig(1, 8, 100, [4, 8]))
        return inner(features, mode)

    estimator = jobs.estimator(model_fn, columns, jobs.run_config(tmp_path / 'job'),
                               export_saved_model_api_version=2)
    estimator.train(jobs.input_fn_of([{'f': np.arange(8), 'label': np.zeros(8)}]), steps=1)
    path = estimator.export_saved_model(str(tmp_path / 'export'), lambda: receiver([None, 2]))
    table = jobs.stored(tmp_path / 'job', 'input_layer/f_embedding/embedding_weights')
    found = served(path.decode(), tmp_path, [[1, 0], [0, 0], [6, 5]])['net']
    np.testing.assert_allclose(found, [table[1], 0 * table[0], table[6] + table[5]], rtol=1e-6)


def training(features):
    return ete.TPUEstimatorSpec('infer', predictions={'y': tf.ones([1])}, train_op=tf.no_op())


def failing(features):
    if tf.get_default_graph().building_function:
        raise KeyError('only on a TPU')
    return {}


@pytest.mark.parametrize('predict, error, said', [
    (training, ValueError, 'train_op with .* must be from the default graph'),
    (failing, KeyError, 'only on a TPU')])
def test_a_model_that_cannot_be_rewritten_leaves_no_half_export(
        tmp_path, trained, predict, error, said):
    with pytest.raises(error, match=said) as caught:
        trained(predict).export_saved_model(str(tmp_path), receiver)
    assert any('export_to_tpu=False' in note for note in caught.value.__notes__)
    assert list(tmp_path.iterdir()) == []
    path = trained(predict, export_to_tpu=False).export_saved_model(str(tmp_path), receiver)
    assert tags(path.decode()) == [['serve']]


def test_other_graphs_are_emulated_meanwhile(tmp_path, trained, monkeypatch):
    module = _tf.modules_of_contrib()['tpu']
    monkeypatch.setattr(module, 'split_compile_and_replicate', tf_tpu.split_compile_and_replicate)
    found = []

    def emulated():
        with tf.Graph().as_default(), tf.Session() as session:
            both = tf.tpu.shard(tf_tpu.cross_replica_sum, [[1., 2.]], num_shards=2)
            found.append(session.run(both)[0].tolist())

    def predict(features):
        thread = threading.Thread(target=emulated)
        thread.start()
        thread.join()
        emulated()
        return {}

    path = trained(predict, export_to_cpu=False).export_saved_model(str(tmp_path), receiver)
    assert tags(path.decode()) == [['serve', 'tpu']] and found == [[3., 3.]] * 2
