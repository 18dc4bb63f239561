"""The other names of the module `tpu_estimator` do what they did in 2.15."""

import collections
import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs, tpu_on_cpu

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.estimator import tpu_estimator_names as inference
from estimator_tpu_embedding.estimator.tpu_config import ExportSavedModelApiVersion
from estimator_tpu_embedding.estimator.tpu_estimator_names import (
    BatchConfig,
    ExamplesPerSecondHook,
    InstallSignalHandlerHook,
    PeriodicLogger,
    _InputsWithStoppingSignals,
    _TPUStopAtStepHook,
)


def test_steps_and_examples_per_second_are_logged_and_written(tmp_path, caplog):
    with tf.Graph().as_default(), caplog.at_level(logging.INFO, 'tensorflow'):
        train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        hook = ExamplesPerSecondHook(8, every_n_steps=2, output_dir=str(tmp_path))
        with tf.train.MonitoredSession(hooks=[hook, InstallSignalHandlerHook()]) as session:
            for _ in range(4):
                session.run(train)
        tf.summary.FileWriterCache.get(str(tmp_path)).flush()
    assert isinstance(hook, tf.train.StepCounterHook)
    file, = tmp_path.iterdir()
    written = [{value.tag: value.simple_value for value in event.summary.value}
               for event in tf.train.summary_iterator(str(file)) if event.HasField('summary')]
    assert written and all(rates['examples/sec'] == pytest.approx(8 * rates['global_step/sec'])
                           for rates in written)
    assert caplog.text.count('examples/sec: ') == len(written)


def test_a_periodic_logger_leaves_out_what_comes_too_soon(caplog):
    with caplog.at_level(logging.INFO, 'tensorflow'):
        rare, always = PeriodicLogger(3600), PeriodicLogger(0)
        for number in range(3):
            rare.log('rare %d', number)
            always.log('always %d', number)
    assert caplog.messages == ['rare 0', 'always 0', 'always 1', 'always 2']


Counter = collections.namedtuple('Counter', 'value unit')
COUNT = Counter(2, 'count')


def test_a_derived_estimator_may_make_the_hook_that_ends_its_training(tmp_path):
    class Derived(ete.TPUEstimator):
        def _convert_train_steps_to_hooks(self, steps, max_steps):
            return [_TPUStopAtStepHook(COUNT, steps, max_steps)]

    columns = [jobs.embedding('f')]
    estimator = Derived(
        jobs.linear_model_fn(columns), config=jobs.run_config(tmp_path), train_batch_size=2,
        embedding_config_spec=ete.EmbeddingConfigSpec(columns, ete.AdagradParameters(.5)))
    estimator.train(jobs.input_fn_of(
        [{'f': np.array([1, 2]), 'label': np.ones(2, np.float32)}] * 4), steps=3)
    assert estimator.get_variable_value('global_step') == 3


@pytest.mark.parametrize('arguments, text', [
    ((COUNT,), 'One of `num_steps` or `final_step` must be specified.'),
    ((COUNT, 1, 2), 'Only one of `num_steps` or `final_step` can be specified.'),
    ((Counter(1, 'hours'), 1), 'Only `count` or `seconds` are accepted')])
def test_the_hook_refuses_what_the_original_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        _TPUStopAtStepHook(*arguments)


def drawn(dataset, **options):
    """Features, labels and signals of each batch, up to the end."""
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = _InputsWithStoppingSignals(dataset(), 2, **options)
        features, labels = inputs.features_and_labels()
        with pytest.raises(RuntimeError, match='previous inputs have not been properly consumed'):
            inputs.features_and_labels()
        fetches = [features, [] if labels is None else labels, inputs.signals()]
        with pytest.raises(RuntimeError, match='current inputs have not been properly generated'):
            inputs.signals()
        session.run(inputs.dataset_initializer())
        found = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(tf.nest.map_structure(np.ndarray.tolist, session.run(fetches)))
        return found


def test_a_batch_that_asks_to_stop_follows_the_data():
    go, stop = {'stopping': [[False]] * 2}, {'stopping': [[True]] * 2}
    assert drawn(lambda: tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]])) == [
        [[1, 2], [], go], [[3, 4], [], go], [[1, 2], [], stop]]


def test_a_smaller_batch_is_padded_and_masked():
    def dataset():
        return tf.data.Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6])).batch(2)

    first, second, *ends = drawn(dataset, add_padding=True, num_invocations_per_step=2)
    assert first[:2] + [first[2]['padding_mask']] == [[1, 2], [4, 5], [0, 0]]
    assert second[:2] + [second[2]['padding_mask']] == [[3, 0], [6, 0], [0, 1]]
    assert [end[2]['padding_mask'] for end in ends] == [[1, 1]] * 3


def test_inputs_come_in_one_or_several_outputs_go_as_a_list_and_batches_have_no_effect(caplog):
    with tf.Graph().as_default(), tf.Session() as session, \
            caplog.at_level(logging.INFO, 'tensorflow'):
        x, y = tf.constant([1.]), tf.constant([3.])
        for computation, want in ((lambda x: x + 1, [[2.]]), (lambda x: (x + 1,), [[2.]]),
                                  (lambda x: [x + 1, 5.], [[2.], 5.])):
            found = inference.call_computation(x, computation)
            assert isinstance(found, list)
            assert [value.tolist() for value in session.run(found)] == want
        assert session.run(inference.call_computation(
            {'x': x, 'y': y}, lambda given: given['y'] - given['x'])[0]) == [2.]
        assert not caplog.messages
        assert session.run(inference.inference_on_tpu(lambda x, y: y - x, [x, y], 1, 8, 100)[0]
                           ) == [2.]
        assert len(caplog.messages) == 1 and 'max_batch_size=8' in caplog.text
        with pytest.raises(TypeError, match=r"E519 computation: .* a dict with the keys \['a'\]"):
            inference.call_computation(x, lambda x: {'a': x})


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
            return inference.model_fn_inference_on_tpu(
                inner, features, labels, None, params, BatchConfig(2, 8, 100, [4, 8]))
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
    on_cpu = tpu_on_cpu.runnable(path, tmp_path / 'on_cpu')
    for directory, tags in ((path, ['serve']), (on_cpu, ['serve', 'tpu'])):
        with tf.Graph().as_default(), tf.Session() as session:
            signature = tf.saved_model.load(session, tags, directory).signature_def[
                'serving_default']
            assert session.run(signature.outputs['y'].name, {
                signature.inputs['x'].name: [[1., 2., 3.], [0., 0., 1.]]}).tolist() == [
                    [12.], [2.]]
            assert ('BatchFunction' in {each.type for each in session.graph.get_operations()}) == (
                'tpu' in tags)
