"""What every session of a run promises: its hooks, its start from elsewhere, its end."""

import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.processes import run_etpe

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.errors import ConfigError, IncompatibleCheckpointError

TABLE = 'dense_features/f_embedding/embedding_weights'
STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 6


def make(directory, model_fn=None, hosts=1, strategy='div', iterations=2, **kwargs):
    columns = [jobs.embedding('f', initializer=tf.zeros_initializer())]
    return jobs.estimator((model_fn or jobs.linear_model_fn)(columns), columns,
                          jobs.run_config(directory, hosts, 1, iterations), batch_size=4,
                          strategy=strategy, **kwargs)


def with_loss(change):
    """A model_fn of `columns` whose loss is `change(activation of one core)`."""
    def of_columns(columns):
        def model_fn(features, labels, mode, params):
            net = tf.keras.layers.DenseFeatures(columns)(features)
            loss = change(net) * tf.reduce_mean(tf.get_variable('w', [], tf.float32))
            return jobs.trained_spec(mode, loss)
        return model_fn
    return of_columns


def test_a_hook_that_evaluates_the_model_between_steps_gets_an_error_and_takes_no_batch(tmp_path):
    losses, errors = [], []

    class Curious(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            try:
                run_context.session.run(losses[0])
            except tf.errors.InvalidArgumentError as error:
                errors.append(error)

    columns = [jobs.embedding('f')]
    estimator = jobs.estimator(
        jobs.linear_model_fn(columns, observe=lambda _, loss: losses.insert(0, loss)), columns,
        jobs.run_config(tmp_path), batch_size=4)
    estimator.train(jobs.input_fn_of(STEPS), steps=6, hooks=[Curious()])
    assert len(errors) == 3 and estimator.get_variable_value('global_step') == 6

    class Stubborn(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            run_context.session.run(losses[0])

    with pytest.raises(ConfigError, match='E457 session.run: .*evaluated together with a step'):
        estimator.train(jobs.input_fn_of(STEPS), steps=2, hooks=[Stubborn()])


def test_what_a_hook_feeds_is_fed_to_every_step_of_a_loop(tmp_path):
    feeds = []

    class Feed(tf.train.SessionRunHook):
        def begin(self):
            self._scale = tf.get_default_graph().get_tensor_by_name('scale:0')

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, {self._scale: 5.})

    def scaled(net):
        scale = tf.placeholder_with_default(1., [], 'scale')
        seen = tf.py_func(lambda value: feeds.append(float(value)) or value, [scale], tf.float32)
        return tf.reduce_sum(net) * tf.reshape(seen, [])

    make(tmp_path, with_loss(scaled), iterations=3).train(
        jobs.input_fn_of(STEPS), steps=5, hooks=[Feed()])
    assert feeds == [5.] * 5


def test_a_session_in_which_something_hangs_does_not_hang_the_run(tmp_path):
    go_on = threading.Event()

    class Forget(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            hang = tf.get_collection('hang')[0]
            self.thread = threading.Thread(target=run_quietly, args=(session, hang))
            self.thread.start()

        def after_run(self, run_context, run_values):
            run_context.request_stop()

    def run_quietly(session, tensor):
        try:
            session.run(tensor)
        except tf.errors.OpError:
            pass  # The session was closed.

    def hanging(net):
        tf.add_to_collection('hang', tf.py_func(
            lambda: ended.append(go_on.wait()) or True, [], tf.bool))
        return tf.reduce_sum(net)

    hook, ended = Forget(), []
    try:
        make(tmp_path, with_loss(hanging)).train(jobs.input_fn_of(STEPS), steps=2, hooks=[hook])
        assert not ended  # It hangs still.
    finally:
        go_on.set()
        hook.thread.join()


def test_a_warm_start_does_not_override_a_checkpoint(tmp_path):
    make(tmp_path / 'source').train(jobs.input_fn_of(STEPS), steps=4)
    make(tmp_path / 'own').train(jobs.input_fn_of(STEPS), steps=1)
    before = jobs.stored(tmp_path / 'own', TABLE)
    make(tmp_path / 'own', warm_start_from=str(tmp_path / 'source'),
         optimizer=ete.AdagradParameters(0.)).train(jobs.input_fn_of(STEPS), steps=1)
    np.testing.assert_array_equal(jobs.stored(tmp_path / 'own', TABLE), before)


@pytest.mark.parametrize('there, here', [('mod', 'div'), ('div', 'mod')])
def test_a_warm_start_gives_every_id_its_row_whatever_the_order(tmp_path, there, here):
    make(tmp_path / 'source', hosts=2, strategy=there).train(jobs.input_fn_of(STEPS), steps=1)
    events = []

    class Look(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            events.append(np.concatenate(session.run(jobs.parts_of(session.graph, TABLE))))

    def with_scaffold(columns):
        def call(features, labels, mode, params):
            spec = jobs.linear_model_fn(columns)(features, labels, mode, params)
            return spec._replace(scaffold_fn=lambda: tf.train.Scaffold(
                init_fn=lambda scaffold, session: events.append('init_fn')))
        return call

    make(tmp_path / 'new', with_scaffold, hosts=1, strategy=here, warm_start_from=str(
        tmp_path / 'source')).train(jobs.input_fn_of(STEPS), steps=1, hooks=[Look()])
    assert events[0] == 'init_fn'
    partition = Partition(strategy=here, vocabulary_size=10, num_hosts=1)
    np.testing.assert_array_equal(
        events[1][partition.stored_row(np.arange(10))],
        jobs.stored(tmp_path / 'source', TABLE, there, 2))


def test_a_mod_job_starts_warm_without_a_manifest_only_if_the_order_is_said(tmp_path):
    make(tmp_path / 'source').train(jobs.input_fn_of(STEPS), steps=1)
    (tmp_path / 'source' / 'model.ckpt-1.tables.json').unlink()
    settings = {'hosts': 2, 'strategy': 'mod', 'warm_start_from': str(tmp_path / 'source')}
    with pytest.raises(IncompatibleCheckpointError, match='E610 warm start from .*--assume mod:H'):
        make(tmp_path / 'new', **settings).train(jobs.input_fn_of(STEPS), steps=1)
    make(tmp_path / 'mod', hosts=2, strategy='mod').train(jobs.input_fn_of(STEPS), steps=1)
    (tmp_path / 'mod' / 'model.ckpt-1.tables.json').unlink()
    settings = {'hosts': 2, 'warm_start_from': str(tmp_path / 'mod')}
    with pytest.raises(IncompatibleCheckpointError, match='E610 .*ckpt-0.* says mod on 2 hosts'):
        make(tmp_path / 'new', **settings).train(jobs.input_fn_of(STEPS), steps=1)
    assert not list((tmp_path / 'new').glob('model.ckpt*'))


def test_a_process_ends_although_a_hook_failed_as_its_session_began(tmp_path):
    script = tmp_path / 'job.py'
    script.write_text("""
import tensorflow.compat.v1 as tf
tpu = tf.estimator.tpu

class Broken(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        raise ValueError('broken')

def model_fn(features, labels, mode, params):
    loss = tf.reduce_mean(tf.layers.dense(features, 1))
    train_op = tf.train.GradientDescentOptimizer(.1).minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

tpu.TPUEstimator(model_fn, config=tpu.RunConfig(), train_batch_size=8).train(
    lambda params: tf.data.Dataset.from_tensors(tf.ones([params['batch_size'], 3])).repeat(),
    steps=3, hooks=[Broken()])
""")
    done = run_etpe('run', script, loaded=True)
    assert done.returncode == 1
    assert 'ValueError: broken' in done.stderr
