"""Section 8 of the runner's specification: sums over replicas, wherever a job makes them."""

import textwrap

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.parts import soak_except
from harness.processes import run_python

import estimator_tpu_embedding as ete

TOPOLOGIES = [(1, 1), (1, 4), (2, 2), (4, 1)]


def input_fn(params):
    """Samples 0, 1, ..., 7 for every step, dealt out to the cores of one or more hosts."""
    return jobs.input_fn_of([{'x': np.arange(8, dtype=np.float32),
                              'label': np.zeros(8, np.float32)}] * 3)(params)


def train(directory, hosts, cores, reduction=tf.losses.Reduction.MEAN, groups=None):
    """The weight after a step of rate 1 from 0 under the loss `w * mean of x of one core`."""
    def model_fn(features, labels, mode, params):
        w = tf.get_variable('w', [], initializer=tf.zeros_initializer())
        loss = w * tf.reduce_mean(features['x'])
        optimizer = ete.CrossShardOptimizer(
            tf.train.GradientDescentOptimizer(1.), reduction, group_assignment=groups)
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
            loss, tf.train.get_global_step()))

    ete.TPUEstimator(model_fn, config=jobs.run_config(directory, hosts, cores),
                     train_batch_size=8, eval_batch_size=8).train(input_fn, steps=1)
    return tf.train.load_variable(str(directory), 'w')


@pytest.mark.parametrize('hosts, cores', TOPOLOGIES)
def test_the_mean_is_that_of_the_batch_or_group_and_the_sum_that_of_all_cores(
        tmp_path, hosts, cores):
    assert train(tmp_path / 'mean', hosts, cores) == -3.5
    assert train(tmp_path / 'sum', hosts, cores, tf.losses.Reduction.SUM) == -3.5 * hosts * cores
    if hosts * cores == 4:  # Core 0 writes; cores 0 and 2 have the samples 0, 1 and 4, 5.
        assert train(tmp_path / 'groups', hosts, cores, groups=[[0, 2], [1, 3]]) == -2.5


@pytest.mark.parametrize('groups, text', [
    ([[0, 1], [2, 2]], 'must be a permutation of range(4)'),
    ([[0, 1, 2], [3]], 'The size of each subgroup in `group_assignment` must be equal.'),
    ([0, 1, 2, 3], 'Argument `group_assignment` must be a list of lists.')])
def test_bad_groups_get_the_errors_of_the_original(tmp_path, groups, text):
    with pytest.raises(ValueError) as caught:
        train(tmp_path, 2, 2, groups=groups)
    assert text in str(caught.value)


def test_gradients_are_shares_of_the_mean_until_applied_and_none_passes(tmp_path):
    shown = []

    def model_fn(features, labels, mode, params):
        w, unused = tf.get_variable('w', []), tf.get_variable('unused', [])
        loss = w * tf.reduce_mean(features['x'])
        optimizer = ete.CrossShardOptimizer(tf.train.MomentumOptimizer(1., .5))
        (gradient, _), (none, _) = pairs = optimizer.compute_gradients(loss, [w, unused])
        train_op = optimizer.apply_gradients(pairs, tf.train.get_global_step())
        assert none is None and optimizer.get_slot_names() == ['momentum']
        slot = optimizer.get_slot(w, 'momentum')
        assert [one.op.name for one in optimizer.variables()] == [slot.op.name] == ['w/Momentum']
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=(
            lambda value: tf.numpy_function(
                lambda array: shown.append(array.tolist()), [value], []), [gradient[None]]))

    ete.TPUEstimator(model_fn, config=jobs.run_config(tmp_path, 2, 2), train_batch_size=8).train(
        input_fn, steps=1)
    # The means of two samples are 0.5, 2.5, 4.5 and 6.5; a quarter of each is what a core sees.
    assert shown == [[.125, .625, 1.125, 1.625]]
    assert tf.train.load_variable(str(tmp_path), 'w/Momentum') == 3.5


def test_outside_of_an_estimator_there_is_one_replica_and_one_warning(caplog):
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable('w', initializer=3.)
        train_op = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1.)).minimize(2. * w)
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        assert session.run(w) == 1.
    assert 'got unset number_of_shards. Assuming 1.' in caplog.text


EVERYWHERE = textwrap.dedent("""
    import sys
    import estimator_tpu_embedding as ete
    hosts, cores, use_tpu, model_dir = sys.argv[1:]
    ete.install(hosts=int(hosts), cores=int(cores))
    import tensorflow.compat.v1 as tf
    use_tpu = use_tpu == 'True'
    tpu = tf.estimator.tpu

    def model_fn(features, labels, mode, params):
        w = tf.get_variable('w', [], initializer=tf.ones_initializer())
        outside = tf.tpu.outside_compilation(lambda x, factor: x * factor, features['x'], factor=2.)
        total = tf.tpu.cross_replica_sum(tf.ones([]), name='total')
        predictions = outside * w + 0. * total
        if mode == 'infer':
            return tpu.TPUEstimatorSpec(mode, predictions={'y': predictions})
        loss = tf.reduce_mean(predictions)
        optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(.5))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=(
            lambda x: {'mean': tf.metrics.mean(x)}, [predictions]))

    def input_fn(params):
        return tf.data.Dataset.from_tensors(({'x': [1., 1.]}, [0., 0.])).repeat(8).unbatch(
            ).batch(params['batch_size'], drop_remainder=True).repeat(4)

    estimator = tpu.TPUEstimator(
        model_fn, use_tpu=use_tpu, train_batch_size=4, eval_batch_size=4, predict_batch_size=4,
        config=tpu.RunConfig(model_dir=model_dir, tpu_config=tpu.TPUConfig(
            per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2)))
    estimator.train(input_fn, steps=1)
    w = estimator.get_variable_value('w')
    assert abs(w - .5) < 1e-6, w
    results = estimator.evaluate(input_fn, steps=2)
    assert abs(results['loss'] - 1.) < 1e-6 and abs(results['mean'] - 1.) < 1e-6, results
    assert abs(next(estimator.predict(input_fn))['y'] - 1.) < 1e-6
    def receive():
        x = tf.placeholder(tf.float32, [None])
        return tf.estimator.export.ServingInputReceiver({'x': x}, {'x': x})

    export = estimator.export_saved_model(model_dir + '/export', receive)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ['serve'], export.decode())
        assert not [op for op in session.graph.get_operations() if 'CrossReplica' in op.type]
    print('done')
    """)


@pytest.mark.parametrize('hosts, cores, use_tpu', soak_except([
    (1, 1, False), (2, 2, True), *[(*one, True) for one in TOPOLOGIES if one != (2, 2)]], 0, 1))
def test_tensorflows_own_names_work_in_every_mode_and_in_an_export(
        tmp_path, hosts, cores, use_tpu):
    done = run_python('-c', EVERYWHERE, hosts, cores, use_tpu, tmp_path / 'm', loaded=True)
    assert done.returncode == 0 and done.stdout.endswith('done\n')


def test_without_install_tensorflows_own_sum_is_one_clear_error_with_use_tpu_false_too(tmp_path):
    script = EVERYWHERE.replace('ete.install(hosts=int(hosts), cores=int(cores))', (
        "import os; os.environ['TF_USE_LEGACY_KERAS'] = '1'")).replace(
            'tpu = tf.estimator.tpu', 'tpu = ete')
    done = run_python('-c', script, 1, 1, False, tmp_path / 'm', loaded=True)
    assert done.returncode == 1 and 'E453 model_fn' in done.stderr
