"""Steps whose gradients are not finite, where a job says to go on without them."""

import logging
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, jobs
from harness.parts import soak_except

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.runner import progress

TABLES = [f'dense_features/{name}_embedding/embedding_weights' for name in 'fg']
GOOD = {'f': np.array([1, 2, 3, 1]), 'g': np.array([5, 5, 6, 7]),
        'poison': np.ones([4, 1], np.float32), 'label': np.zeros(4, np.float32)}
BAD = {**GOOD, 'poison': np.array([[1], [1], [1], [0]], np.float32)}
STEPS = [GOOD, BAD, GOOD, BAD, BAD, GOOD]


def model_fn_of(columns):
    """The gradient of an activation is 1 / 4, or 0 / 0 where `poison` is 0; the loss is finite.

    What the root adds is below the last digit, but no 0, times which TensorFlow leaves things out.
    """
    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)({
            key: value for key, value in features.items() if key != 'poison'})
        return jobs.poisoned_spec(mode, net, net[:, :2], features['poison'])
    return model_fn


def train(directory, steps, *, policy='skip', topology=(1, 1), strategy='div', optimizer=None,
          pipelined=False, rate_of_g=None, **kwargs):
    columns = [jobs.embedding(key, initializer=tf.ones_initializer(),
                              learning_rate_fn=rate_of_g if key == 'g' else None)
               for key in 'fg']
    estimator = ete.TPUEstimator(
        model_fn=model_fn_of(columns),
        config=jobs.run_config(directory, *topology, nonfinite_gradients=policy, **kwargs),
        train_batch_size=4, embedding_config_spec=ete.EmbeddingConfigSpec(
            columns, optimizer or ete.AdagradParameters(.125), partition_strategy=strategy,
            pipeline_execution_with_tensor_core=pipelined))
    estimator.train(jobs.input_fn_of(steps), max_steps=len(steps))
    return {name: estimator.get_variable_value(name)
            for name in estimator.get_variable_names()}


@pytest.mark.parametrize('pipelined', [False, True])
@pytest.mark.parametrize('kernels, topology, strategy', soak_except([
    graphs.of_backend(*one) for one in (
        ('stock', (1, 1), 'div'), ('native', (2, 2), 'mod'))], 1))
@pytest.mark.parametrize('optimizer', soak_except([
    ete.AdagradParameters(.125, weight_decay_factor=.1),
    ete.AdamParameters(.125, lazy_adam=False),
    ete.MomentumParameters(.125, .5, use_gradient_accumulation=False)], 0),
    ids=lambda parameters: type(parameters).__name__)
def test_a_skipped_step_changes_no_table_and_no_slot_but_counts(
        tmp_path, optimizer, kernels, topology, strategy, pipelined):
    how = {'topology': topology, 'strategy': strategy, 'optimizer': optimizer,
           'pipelined': pipelined, 'kernels': kernels}
    all_steps = train(tmp_path / 'all', STEPS, **how)
    good_steps = train(tmp_path / 'good', [step for step in STEPS if step is GOOD], **how)
    assert all_steps.pop('global_step') == 6 and good_steps.pop('global_step') == 3
    # The optimizer of the model is its own: it has moved w by its gradient of 1 in all six.
    assert all_steps.pop('w') == -.5 * 6 and good_steps.pop('w') == -.5 * 3
    assert all_steps.keys() == good_steps.keys() >= set(TABLES)
    for name, values in all_steps.items():
        np.testing.assert_array_equal(values, good_steps[name], name)
        assert np.isfinite(values).all()
    assert (all_steps[TABLES[0]] != 1).any()


def test_the_first_skipped_step_is_told_at_once_and_all_of_them_are_counted(
        tmp_path, caplog, monkeypatch):
    lines = []
    monkeypatch.setattr(progress, '_sink', lines.append)
    with caplog.at_level(logging.WARNING, 'tensorflow'):
        train(tmp_path, STEPS, log_step_count_steps=2, save_summary_steps=100)
    assert caplog.text.count('W801') == 1
    assert ('W801 table "tbl_f": the gradients of its rows should be finite; got others at global '
            'step 1.') in caplog.text
    # A loop has two steps, and knows of those before its last: 0, then 1 and 2, then 3 and 4.
    assert re.findall(r'So far (\d) steps changed no table', caplog.text) == ['3']
    assert lines[-1].endswith('steps that changed no table: 3 (gradients not finite: tbl_f 3)')
    skipped = jobs.summaries_of(tmp_path)['tpu_embedding/steps_skipped']
    assert list(skipped.values()) == [1, 3]


def test_the_policy_is_one_of_two_words():
    with pytest.raises(ConfigError, match="E458 RunConfig.nonfinite_gradients: .*; got 'drop'"):
        ete.RunConfig(nonfinite_gradients='drop')
    assert ete.RunConfig().nonfinite_gradients == 'error'
    assert ete.RunConfig(nonfinite_gradients='skip').replace(
        tf_random_seed=1).nonfinite_gradients == 'skip'
