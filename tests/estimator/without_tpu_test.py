"""Section 15 of the runner's specification: what `use_tpu=False` does, says and refuses."""

import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete


def input_fn(params):
    """Six batches of four samples."""
    return tf.data.Dataset.from_tensors(({'f': [1, 2, 3, 1]}, np.ones(4, np.float32))).repeat(6)


def make(directory, config=None, **kwargs):
    columns = [jobs.embedding('f')]
    return ete.TPUEstimator(**{
        'model_fn': jobs.linear_model_fn(columns, lambda: tf.train.GradientDescentOptimizer(.1)),
        'use_tpu': False, 'config': config or jobs.run_config(directory), 'embedding_config_spec':
        ete.EmbeddingConfigSpec(columns, ete.AdagradParameters(.5)), **kwargs})


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records
            if record.getMessage().startswith('use_tpu=False')]


def test_the_first_training_names_the_declared_optimizer_and_how_to_get_it(tmp_path, caplog):
    estimator = make(tmp_path)
    assert not warnings_of(caplog)  # An evaluation would train nothing.
    estimator.train(input_fn, steps=1)
    estimator.train(input_fn, steps=1)
    assert warnings_of(caplog) == [
        'use_tpu=False: the optimizer of model_fn trains the embedding tables, and not what '
        'embedding_config_spec declares, AdagradParameters. To train them with that, set '
        'use_tpu=True: this package emulates the TPU on the CPU.']
    assert dict(tf.train.list_variables(str(tmp_path))) == {
        'dense_features/f_embedding/embedding_weights': [10, 2], 'w/kernel': [2, 1],
        'global_step': []}


def test_functions_that_do_not_fit_are_refused_as_with_use_tpu(tmp_path):
    with pytest.raises(ValueError, match='does not include params argument, required by TPUEst'):
        make(tmp_path).train(lambda: None, steps=1)
    with pytest.raises(ValueError, match='model_fn should return an EstimatorSpec.'):
        make(tmp_path, model_fn=lambda features, labels, params: None).train(input_fn, steps=1)


def test_functions_get_what_section_15_says_and_input_is_taken_in_every_form(
        tmp_path, caplog):
    seen = []

    def inputs_of(make_input):
        def input_fn(params, mode, input_context):
            element = make_input()
            device = tf.zeros([]).device
            seen.append((mode, sorted(params), input_context, device))
            return element
        return input_fn

    def model_fn(features, labels, mode, params):
        seen.append((mode, sorted(params), params['use_tpu'], labels is None))
        y = features * tf.get_variable('w', [], initializer=tf.ones_initializer())
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions=y)
        return ete.TPUEstimatorSpec(mode, loss=tf.reduce_mean(y),
                                    train_op=tf.train.get_global_step().assign_add(1))

    def made(**kwargs):
        return ete.TPUEstimator(model_fn, config=jobs.run_config(tmp_path), use_tpu=False,
                                params={'mine': 7}, **kwargs)

    made().train(inputs_of(lambda: (tf.ones([2]), tf.ones([2]))), steps=1)
    sized = made(train_batch_size=3, eval_batch_size=4, predict_batch_size=5)
    sized.train(inputs_of(lambda: tf.ones([2])), steps=1)
    rows = sized.predict(inputs_of(lambda: tf.data.Dataset.range(20).map(
        lambda one: (tf.cast(one, tf.float32), one)).batch(8)), yield_single_examples=False)
    assert [len(row) for row in rows] == [8, 8, 4]
    cpu = '/device:CPU:0'
    assert seen == [
        ('train', ['mine'], None, cpu), ('train', ['mine', 'use_tpu'], False, False),
        ('train', ['batch_size', 'mine'], None, cpu),
        ('train', ['batch_size', 'mine', 'use_tpu'], False, True),
        ('infer', ['batch_size', 'mine'], None, cpu),
        ('infer', ['batch_size', 'mine', 'use_tpu'], False, True)]
    assert not warnings_of(caplog)  # There are no tables.


def test_what_a_tpu_config_says_of_loops_hosts_and_cores_changes_nothing(tmp_path, caplog):
    config = ete.RunConfig(model_dir=str(tmp_path), tpu_config=ete.TPUConfig(
        iterations_per_loop=100, num_shards=7, num_cores_per_replica=128,
        per_host_input_for_training=ete.InputPipelineConfig.BROADCAST,
        initial_infeed_sleep_secs=1000, experimental_host_call_every_n_steps=50))
    hook = jobs.EveryRun()
    estimator = make(tmp_path, config=config, batch_axis=[7, 7])
    with caplog.at_level(logging.INFO, 'tensorflow'):
        estimator.train(input_fn, hooks=[hook])
    assert hook.runs == 6 and estimator.get_variable_value('global_step') == 6
    assert 'Running train on CPU/GPU' in caplog.text
    assert estimator.evaluate(input_fn, hooks=[hook])['global_step'] == 6
    assert hook.runs == 12  # Both went on to the end of the data.
    with pytest.raises(ValueError, match='Must specify steps > 0, given: -321'):
        estimator.evaluate(input_fn, steps=-321)
