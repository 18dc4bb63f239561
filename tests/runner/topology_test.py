"""The law of the product: how many hosts and cores there are does not change the numbers.

Without gradient accumulation the number of cores does, as on the hardware.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, jobs
from harness.numpy_reference import ReferenceTable, assert_close
from harness.parts import soak_except

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.core.optimizers import Adagrad

pytestmark = pytest.mark.no_rerun
PLACES = [(1, 1, 'div'), (1, 4, 'mod'),  # On one host both strategies are one.
          (2, 2, 'div'), (2, 2, 'mod'), (4, 1, 'div'), (4, 1, 'mod')]
STEPS, BATCH, ROWS, WIDTH = 20, 8, 13, 3
SHARED = 'one_two_shared_embedding'
ALONE = 'dense_features/alone_embedding/embedding_weights'
INITIAL = {name: np.random.default_rng(7).normal(size=(ROWS, width)).astype(np.float32)
           for name, width in ((SHARED, WIDTH), (ALONE, 2))}


def make_columns():
    return ete.shared_embedding_columns(
        [jobs.identity_column(key, ROWS) for key in ('one', 'two')], WIDTH, 'mean') + [
            jobs.embedding('alone', ROWS, 2, 'sum')]


def make_steps():
    generator = np.random.default_rng(8)
    return [{'one': graphs.random_samples(generator, BATCH, ROWS),
             'two': graphs.random_samples(generator, BATCH, ROWS, most=1),
             'alone': generator.integers(0, ROWS, BATCH),
             'label': generator.normal(size=BATCH).astype(np.float32)} for _ in range(STEPS)]


def train(model_dir, hosts, cores, strategy, **kwargs):
    columns = make_columns()
    estimator = jobs.estimator(
        jobs.linear_model_fn(columns), columns, jobs.run_config(model_dir, hosts, cores, 5),
        strategy=strategy, batch_size=BATCH, optimizer=ete.AdagradParameters(.5, **kwargs))
    estimator.train(jobs.input_fn_of(make_steps()), max_steps=STEPS, hooks=[
        jobs.AssignTable(name, rows, strategy) for name, rows in INITIAL.items()])
    result = {name: jobs.stored(model_dir, name, strategy, hosts)
              for table in INITIAL for name in (table, f'{table}/Adagrad')}
    result['w/kernel'] = tf.train.load_variable(str(model_dir), 'w/kernel')
    return result


def reference(cores=1, **kwargs):
    """The same job in NumPy: y = [alone, one, two] @ w, mean squared error over the batch."""
    optimizer = Adagrad(learning_rate=.5, **kwargs)
    shared = ReferenceTable(INITIAL[SHARED], optimizer, 'mean')
    alone = ReferenceTable(INITIAL[ALONE], optimizer, 'sum')
    w = np.ones([2 + 2 * WIDTH, 1])  # DenseFeatures sorts its columns by name
    for step in make_steps():
        ids = [[one] for one in step['alone']]
        net = np.concatenate([alone.lookup(ids), shared.lookup(step['one']),
                              shared.lookup(step['two'])], 1)
        error = 2 * (net @ w - step['label'][:, None]) / BATCH
        gradient = error @ w.T
        w = w - .1 * net.T @ error
        alone.update([(ids, gradient[:, :2], None)], cores)
        shared.update([(step['one'], gradient[:, 2:2 + WIDTH], None),
                       (step['two'], gradient[:, 2 + WIDTH:], None)], cores)
    return {SHARED: shared.rows, f'{SHARED}/Adagrad': shared.slots['Adagrad'],
            ALONE: alone.rows, f'{ALONE}/Adagrad': alone.slots['Adagrad'], 'w/kernel': w}


@pytest.mark.parametrize('hosts, cores, strategy', soak_except(PLACES, 1, 3))
def test_after_20_steps_tables_slots_and_dense_variables_agree_with_the_reference(
        tmp_path, hosts, cores, strategy):
    expected = reference()
    actual = train(tmp_path, hosts, cores, strategy)
    assert actual.keys() == expected.keys()
    for name, values in actual.items():
        np.testing.assert_allclose(values, expected[name], atol=1e-5, err_msg=name)
        assert_close(values, expected[name], tolerance=2e-5)


def given_gradients_model_fn(columns):
    """The gradient of an activation is the label of its sample."""
    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        own_loss = tf.reduce_sum(net[:, 0] * labels) + 0. * tf.get_variable('w', [])
        loss = own_loss * params['context'].num_replicas  # By which CrossShardOptimizer divides.
        optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1))
        return ete.TPUEstimatorSpec(
            mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))
    return model_fn


@pytest.mark.parametrize('kernels, hosts, cores, strategy, pipelined', soak_except([
    graphs.of_backend(*one) for one in (
        ('native', 1, 2, 'div', False), ('native', 2, 1, 'div', True),
        ('stock', 2, 1, 'mod', False), ('stock', 1, 2, 'div', True))], 1, 2))
def test_without_accumulation_a_job_updates_core_by_core_as_upstreams_test_says(
        tmp_path, kernels, hosts, cores, strategy, pipelined):
    """`test_adagrad_opt_embedding_variables_on_tpu`, of tensorflow_estimator.

    Ids 1 and 2 have gradients 1.5 and 1.0 on core 0, and 0.5 on core 1.
    """
    columns = [jobs.embedding('alone', 4, 1, initializer=tf.zeros_initializer())]
    ete.TPUEstimator(
        model_fn=given_gradients_model_fn(columns), train_batch_size=4,
        config=jobs.run_config(tmp_path, hosts, cores, kernels=kernels),
        embedding_config_spec=ete.EmbeddingConfigSpec(
            columns, ete.AdagradParameters(.5, .1, use_gradient_accumulation=False),
            partition_strategy=strategy, pipeline_execution_with_tensor_core=pipelined),
    ).train(jobs.input_fn_of([{'alone': [[1, 2], [1, 2], [2, 1], []],
                               'label': np.float32([1.5, 1., .5, 9.])}]), max_steps=1)
    rows, sums = (jobs.stored(tmp_path, name, strategy, hosts)[:, 0]
                  for name in (ALONE, f'{ALONE}/Adagrad'))
    # Row 1 resides on core 1, which comes first; row 2 on core 0.
    for row, first, second in ((1, .5, 1.5 + 1.), (2, 1.5 + 1., .5)):
        sum_1 = .1 + first ** 2
        sum_2 = sum_1 + second ** 2
        assert_close(sums[row], sum_2)
        assert_close(rows[row], -.5 * (first / np.sqrt(sum_1) + second / np.sqrt(sum_2)))
    assert_close(sums[[0, 3]], [.1, .1])
