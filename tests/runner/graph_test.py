"""What the graph of a step promises, whatever the model, and the garbage collector meanwhile."""

import gc

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.runner.step_graph import ALLOCATIONS, collected_rarely

TABLE = 'dense_features/f_embedding/embedding_weights'


def tables_alone(columns):
    """No variable but the table: nothing that the optimizer here does depends on the batch."""
    def model_fn(features, labels, mode, params):
        loss = tf.reduce_mean(tf.keras.layers.DenseFeatures(columns)(features))
        return jobs.trained_spec(mode, loss)
    return model_fn


@pytest.mark.parametrize('pipelined', [False, True])
def test_a_rate_is_that_of_the_step_before_train_op_raises_it(tmp_path, pipelined):
    columns = [jobs.embedding('f', 4, 1, initializer=tf.zeros_initializer(),
                              learning_rate_fn=lambda step: 2.**-tf.cast(step, tf.float32))]
    estimator = ete.TPUEstimator(
        model_fn=tables_alone(columns), config=jobs.run_config(tmp_path, iterations=4),
        train_batch_size=4, embedding_config_spec=ete.EmbeddingConfigSpec(
            columns, ete.StochasticGradientDescentParameters(.1),
            pipeline_execution_with_tensor_core=pipelined))
    steps = [{'f': np.arange(4), 'label': np.zeros(4, np.float32)}] * 16
    for last in (10, 16):  # The second run begins at step 10.
        estimator.train(jobs.input_fn_of(steps), max_steps=last)
    # The gradient of each row is 1 / 4.
    np.testing.assert_array_equal(
        jobs.stored(tmp_path, TABLE)[:, 0], -sum(2.**-step for step in range(16)) / 4)


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize('before, during', [
    ((700, 10, 10), ALLOCATIONS), ((0, 10, 10), (0, 10, 10)),
    ((200_000, 5, 5), (200_000, 5, 5))])
def test_the_thresholds_are_higher_and_come_back_also_after_an_error(before, during):
    gc.set_threshold(*before)
    with pytest.raises(ZeroDivisionError), collected_rarely():
        assert gc.get_threshold() == during
        raise ZeroDivisionError
    assert gc.get_threshold() == before
