import logging
import re
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.cli import input_argument
from estimator_tpu_embedding.hosts import step_clock
from estimator_tpu_embedding.runner import progress
from estimator_tpu_embedding.runner.checkpoint_hooks import AsyncCheckpointSaverHook

TABLE = 'dense_features/f_embedding/embedding_weights'


def endless(params):
    """Ids 0, 1, 2, ... modulo 10, label 1, for ever."""
    return tf.data.Dataset.range(10).repeat().map(
        lambda one: ({'f': one}, 1.)).batch(params['batch_size'], drop_remainder=True)


def make(directory, model_fn=None, hosts=1, cores=1, iterations=2, buckets=10, dimension=2,
         strategy='div', optimizer=None, batch_size=4, **kwargs):
    columns = [jobs.embedding('f', buckets, dimension)]
    return jobs.estimator(
        model_fn(columns) if model_fn else jobs.linear_model_fn(columns), columns,
        jobs.run_config(directory, hosts, cores, iterations, **kwargs),
        strategy=strategy, optimizer=optimizer, batch_size=batch_size)


def global_step(session):
    return int(session.run(tf.train.get_global_step(session.graph)))


@pytest.mark.parametrize('iterations, expected', [
    (4, [4, 8, 10]), (40, [10]), (1, list(range(1, 11))), ('4', [4, 8, 10])])
def test_one_run_is_iterations_per_loop_steps_and_the_last_is_cut_short(
        tmp_path, iterations, expected):
    seen = []
    make(tmp_path, iterations=iterations).train(endless, steps=10, hooks=[
        jobs.EveryRun(lambda session: seen.append(global_step(session)))])
    assert seen == expected


def test_steps_count_from_the_checkpoint_and_max_steps_from_zero(tmp_path):
    seen = []
    hook = jobs.EveryRun(lambda session: seen.append(global_step(session)))
    make(tmp_path, iterations=4).train(endless, max_steps=3)
    make(tmp_path, iterations=4).train(endless, max_steps=10, hooks=[hook])
    assert seen == [7, 10]
    make(tmp_path, iterations=4).train(endless, steps=10, hooks=[hook])
    assert seen == [7, 10, 14, 18, 20]
    estimator = make(tmp_path, iterations=4)
    assert estimator.train(endless, max_steps=20, hooks=[hook]) is estimator
    assert seen == [7, 10, 14, 18, 20]  # nothing left to do


def test_hooks_see_one_run_per_loop_and_may_fetch_tensors_of_the_model(tmp_path):
    events, fetched = [], []

    class Order(tf.train.SessionRunHook):
        def __init__(self, name):
            self.name = name

        def before_run(self, run_context):
            events.append(('before', self.name, global_step(run_context.session)))
            return tf.train.SessionRunArgs(losses[-1])

        def after_run(self, run_context, run_values):
            events.append(('after', self.name, global_step(run_context.session)))
            fetched.append(float(run_values.results))

    losses = []

    def model_fn(columns):
        return jobs.linear_model_fn(columns, observe=lambda _, loss: losses.append(loss))

    make(tmp_path, model_fn, iterations=3).train(
        endless, steps=6, hooks=[Order('first'), Order('second')])
    assert events == [('before', 'first', 0), ('before', 'second', 0),
                      ('after', 'first', 3), ('after', 'second', 3),
                      ('before', 'first', 3), ('before', 'second', 3),
                      ('after', 'first', 6), ('after', 'second', 6)]
    assert np.isfinite(fetched).all()


def test_a_run_that_is_interrupted_and_resumed_equals_one_that_is_not(tmp_path):
    make(tmp_path / 'whole').train(endless, max_steps=10)  # 40 samples: ids start over at 5
    make(tmp_path / 'parts').train(endless, max_steps=5)
    make(tmp_path / 'parts').train(endless, max_steps=10)
    for name in (TABLE, f'{TABLE}/Adagrad', 'w/kernel'):
        whole, parts = (tf.train.load_variable(str(tmp_path / where), name)
                        for where in ('whole', 'parts'))
        np.testing.assert_array_equal(whole, parts, name)


def test_c20_c21_a_job_goes_on_with_other_hosts_and_another_strategy_as_if_nothing_had_changed(
        tmp_path):
    random = np.random.RandomState(1)
    batches = [{'f': random.randint(0, 10, 12), 'label': random.rand(12).astype(np.float32)}
               for _ in range(4)]
    first, later = jobs.input_fn_of(batches[:2]), jobs.input_fn_of(batches[2:])

    def job(where, strategy, hosts):
        return make(tmp_path / where, strategy=strategy, hosts=hosts, batch_size=12)

    def receiver():
        ids = tf.placeholder(tf.int64, [None], name='ids')
        return _legacy.load().export.ServingInputReceiver({'f': ids}, {'f': ids})

    job('whole', 'mod', 2).train(first, steps=2)
    shutil.copytree(tmp_path / 'whole', tmp_path / 'moved')
    job('whole', 'mod', 2).train(later, steps=2)
    job('moved', 'div', 3).train(later, steps=2)
    found = {}
    for where, order in (('whole', ('mod', 2)), ('moved', ('div', 3))):
        one_host = job(where, 'div', 1)
        path = one_host.export_saved_model(str(tmp_path / f'{where}-export'), receiver).decode()
        loss = one_host.evaluate(later, steps=2)['loss']
        found[where] = [loss, *[jobs.stored(tmp_path / where, name, *order)
                                for name in (TABLE, f'{TABLE}/Adagrad')],
                        tf.train.load_variable(f'{path}/variables/variables', TABLE)]
        np.testing.assert_array_equal(found[where][1], found[where][3])
    for whole, moved in zip(*found.values(), strict=True):
        np.testing.assert_allclose(moved, whole, rtol=1e-5)


def test_hooks_listeners_and_scaffold_of_the_user_are_served(tmp_path):
    events = []

    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            events.append(('saved', int(global_step_value)))

    class Hook(tf.train.SessionRunHook):
        def end(self, session):
            events.append(('end', global_step(session)))

    def model_fn(columns):
        def call(features, labels, mode, params):
            spec = jobs.linear_model_fn(columns)(features, labels, mode, params)

            def scaffold_fn():
                table = tf.global_variables(TABLE)[0]  # tables exist by then
                return tf.train.Scaffold(
                    init_fn=lambda scaffold, session: table.load(np.full([10, 2], 7.), session))
            return spec._replace(training_hooks=[Hook()], scaffold_fn=scaffold_fn)
        return call

    make(tmp_path, model_fn, optimizer=ete.AdagradParameters(0.)).train(
        endless, steps=2, saving_listeners=[Listener()])
    assert events == [('saved', 0), ('saved', 2), ('end', 2)]
    assert (jobs.stored(tmp_path, TABLE) == 7.).all()


def test_listeners_without_a_saver_get_the_error_of_the_original(tmp_path):
    with pytest.raises(ValueError) as caught:
        make(tmp_path, save_checkpoints_steps=None, save_checkpoints_secs=None).train(
            endless, steps=1, saving_listeners=[tf.train.CheckpointSaverListener()])
    assert str(caught.value) == (
        'There should be a CheckpointSaverHook to use saving_listeners. Please set one of the '
        'RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs.')


def test_saver_hooks_of_the_user_may_be_several_and_save_a_part(tmp_path):
    columns = [jobs.embedding('f')]
    estimator = jobs.estimator(jobs.linear_model_fn(columns), columns,
                               jobs.run_config(tmp_path, 2), strategy='mod')

    class OfTheStep(tf.train.CheckpointSaverHook):
        def begin(self):
            self._saver = tf.train.Saver([tf.train.get_global_step()])
            super().begin()

    estimator.train(endless, steps=2, hooks=[
        AsyncCheckpointSaverHook(str(tmp_path), save_steps=1),
        OfTheStep(str(tmp_path / 'part'), save_steps=1)])
    assert set(read_manifest(str(tmp_path / 'model.ckpt-2')).tables) == {TABLE}
    assert read_manifest(str(tmp_path / 'part' / 'model.ckpt-2')).tables == {}


def test_loss_rates_and_the_loss_of_the_final_step_are_logged_as_before(tmp_path, caplog):
    with caplog.at_level(logging.INFO, 'tensorflow'):
        make(tmp_path, log_step_count_steps=2, save_summary_steps=2).train(endless, steps=6)
    for text in ('global_step/sec: ', 'examples/sec: ', 'Loss for final step: '):
        assert text in caplog.text
    assert re.findall(r'loss = [\d.]+, step = (\d+)', caplog.text) == ['2', '4', '6']
    found = jobs.summaries_of(tmp_path)
    for step in (2, 4, 6):  # The batch has four examples.
        assert found['examples/sec'][step] == pytest.approx(4 * found['global_step/sec'][step])
    assert 'loss' in found


def test_a_run_announces_its_topology_and_reports_its_steps_even_if_it_fails(
        tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(progress, '_sink', lines.append)
    for module, name in ((progress, '_reports'), (step_clock, '_records'),
                         (progress, '_own_loops')):
        monkeypatch.setattr(module, name, [])
    estimator = make(tmp_path, hosts=2, cores=2)
    estimator.train(endless, steps=3)
    with pytest.raises(tf.errors.OutOfRangeError):
        estimator.evaluate(lambda params: endless(params).take(2), steps=2)
    assert [re.split(' steps?, ', line)[0] for line in lines] == [
        'train: global 4 = 2 hosts x 2 cores x 1; 1 div-partitioned table, trained by adagrad',
        'train: 3', 'evaluate: global 4 = 2 hosts x 2 cores x 1; 1 div-partitioned table',
        'evaluate: 1']
    assert [(report.verb, report.steps, report.counts['f'].seen)
            for report in progress.reports()] == [('train', 3, 12), ('evaluate', 1, 4)]
    assert re.fullmatch(
        rf'train 3 steps, [\d,]+ examples/s, saved in {tmp_path}; evaluate 1 step, '
        r'[\d,]+ examples/s; '
        r'(native|stock) kernels; time: input \d+ %, lookup \d+ %, dense \d+ %, update \d+ %'
        r', other \d+ %; ids missing: 0; ids truncated: 0; ids out of range: 0', progress.totals())


def test_a_global_step_that_stands_still_is_not_a_silent_loop(tmp_path, caplog):
    def model_fn(columns):
        def call(features, labels, mode, params):
            spec = jobs.linear_model_fn(columns)(features, labels, mode, params)
            grow = tf.assign_add(runs, 1)
            with tf.control_dependencies([grow]):  # the step follows every fourth time only
                step = tf.train.get_global_step()
                follow = tf.assign_add(step, tf.cast(tf.equal(grow % 4, 0), tf.int64))
            return spec._replace(train_op=follow)
        runs = None

        def with_counter(features, labels, mode, params):
            nonlocal runs
            runs = tf.get_variable('runs', initializer=0, trainable=False)
            return call(features, labels, mode, params)
        return with_counter

    with caplog.at_level(logging.WARNING, 'tensorflow'):
        make(tmp_path, model_fn, iterations=1).train(endless, max_steps=2)
    assert caplog.text.count('The global step is 0 as before this run') == 1
    assert tf.train.load_variable(str(tmp_path), 'runs') == 8


def test_a_model_without_embedding_tables_is_called_once_per_graph(tmp_path):
    calls = []

    def model_fn(features, labels, mode, params):
        calls.append(mode)
        logits = tf.layers.dense(features['x'], 1, name='w')
        loss = tf.reduce_mean(tf.square(logits[:, 0] - labels))
        return jobs.trained_spec(mode, loss)

    def input_fn(params):
        return tf.data.Dataset.from_tensors(
            ({'x': np.ones([params['batch_size'], 3], np.float32)},
             np.ones(params['batch_size'], np.float32))).repeat()

    estimator = ete.TPUEstimator(model_fn=model_fn, config=jobs.run_config(tmp_path, 2, 2),
                                 train_batch_size=8, eval_batch_size=8)
    before = estimator.evaluate(input_fn, steps=1)
    estimator.train(input_fn, steps=20)
    after = estimator.evaluate(input_fn, steps=1)
    assert after['loss'] < before['loss']
    assert after['global_step'] == 20
    assert calls == ['eval', 'train', 'eval']


def test_several_cores_without_a_sum_over_them_are_refused(tmp_path):
    def model_fn(columns):
        return jobs.linear_model_fn(columns, lambda: tf.train.GradientDescentOptimizer(.1))

    with pytest.raises(ValueError, match='CrossShardOptimizer must be used for model training'):
        make(tmp_path, model_fn, cores=2).train(endless, steps=1)


@pytest.mark.parametrize('name, shown', [('loss', '"loss"'), ('global_step', '`global_step`')])
def test_metrics_must_not_take_the_names_of_the_default_ones(tmp_path, name, shown):
    def model_fn(columns):
        def call(features, labels, mode, params):
            spec = jobs.linear_model_fn(columns)(features, labels, mode, params)
            return spec._replace(eval_metrics=(lambda x: {name: tf.metrics.mean(x)}, [labels]))
        return call

    with pytest.raises(ValueError, match=f'Metric with name {shown} is not allowed'):
        make(tmp_path, model_fn).evaluate(endless, steps=1)


def test_a_checkpoint_carries_the_config_of_its_job(tmp_path):
    make(tmp_path, hosts=2).train(endless, steps=2)
    config, = input_argument.load(str(tmp_path))
    assert config.where.endswith('model.ckpt-2: config')
    assert (config.config.num_hosts, config.config.table_descriptor[0].vocabulary_size) == (2, 10)
    assert config.config.table_descriptor[0].optimization_parameters.HasField('adagrad')
