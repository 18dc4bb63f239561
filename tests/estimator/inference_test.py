"""What a model_fn of an export with API version 2 calls: lists of tensors, as in 2.15."""

import logging

import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.estimator import inference
from estimator_tpu_embedding.estimator.export import BatchConfig
from estimator_tpu_embedding.estimator.tpu_config import ExportSavedModelApiVersion

BATCHES = BatchConfig(2, 8, 100, [4, 8])


@pytest.mark.parametrize('computation, want', [
    (lambda x: x + 1, [[2.]]), (lambda x: (x + 1,), [[2.]]), (lambda x: [x + 1, 5.], [[2.], 5.])])
@pytest.mark.parametrize('batches', [None, BATCHES])
def test_outputs_are_a_list_of_tensors_however_the_computation_gives_them(
        computation, want, batches):
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.constant([1.])
        called = inference.call_computation(given, computation, batches)
        listed = inference.inference_on_tpu(computation, [given], 1, 8 if batches else 0, 100)
        assert isinstance(called, list) and isinstance(listed, list)
        assert [value.tolist() for value in session.run(called)] == want
        assert [value.tolist() for value in session.run(listed)] == want


def test_inputs_come_as_one_structure_or_as_arguments_and_batches_have_no_effect(caplog):
    with tf.Graph().as_default(), tf.Session() as session, \
            caplog.at_level(logging.INFO, 'tensorflow'):
        x, y = tf.constant([1.]), tf.constant([3.])
        assert session.run(inference.call_computation(
            {'x': x, 'y': y}, lambda given: given['y'] - given['x'])[0]) == [2.]
        assert not caplog.messages
        assert session.run(inference.inference_on_tpu(lambda x, y: y - x, [x, y], 1, 8, 100)[0]
                           ) == [2.]
        assert len(caplog.messages) == 1 and 'max_batch_size=8' in caplog.text
        with pytest.raises(TypeError, match=r"E519 computation: .* a dict with the keys \['a'\]"):
            inference.call_computation(x, lambda x: {'a': x})


def test_a_model_fn_is_called_for_predictions_with_what_it_takes():
    def model_fn(features, mode, params):
        return features, mode, params

    assert inference.model_fn_inference_on_tpu(model_fn, 'f', 'l', 'c', {'p': 1}, BATCHES) == (
        'f', 'infer', {'p': 1})
    assert inference.model_fn_inference_on_tpu(
        lambda features, labels, config: (features, labels, config), 'f', 'l', 'c') == (
            'f', 'l', 'c')


@pytest.mark.parametrize('whole', [True, False])
def test_an_export_of_api_version_2_serves_what_the_model_computes(tmp_path, whole):
    def network(features):
        return tf.layers.dense(features['x'], 1, use_bias=False,
                               kernel_initializer=tf.constant_initializer(2.))

    def inner(features, labels, mode, params):
        loss = tf.reduce_mean(net := network(features))
        train_op = None if mode == 'infer' else tf.train.GradientDescentOptimizer(0.).minimize(
            loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode, predictions={'y': net}, loss=loss, train_op=train_op)

    def model_fn(features, labels, mode, params):
        if mode != 'infer':
            return inner(features, labels, mode, params)
        if whole:
            return inference.model_fn_inference_on_tpu(inner, features, labels, None, params,
                                                       BATCHES)
        y, = inference.inference_on_tpu(lambda x: network({'x': x}), [features['x']], 1, 8, 100)
        return ete.TPUEstimatorSpec(mode, predictions={'y': y})

    estimator = ete.TPUEstimator(
        model_fn, config=jobs.run_config(tmp_path), train_batch_size=1,
        export_saved_model_api_version=ExportSavedModelApiVersion.V2)
    estimator.train(lambda params: tf.data.Dataset.from_tensors(
        ({'x': tf.ones([1, 3])}, 0.)).repeat(), steps=1)

    def receiver():
        features = {'x': tf.placeholder(tf.float32, [None, 3])}
        return _legacy.load().export.ServingInputReceiver(features, features)

    path = estimator.export_saved_model(str(tmp_path / 'export'), receiver).decode()
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ['serve'], path).signature_def['serving_default']
        assert session.run(signature.outputs['y'].name, {
            signature.inputs['x'].name: [[1., 2., 3.], [0., 0., 1.]]}).tolist() == [[12.], [2.]]
