"""`TPUConfig(experimental_feed_hook=...)`: a hook of the user in the place of the infeed."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.estimator.tpu_estimator_names import TPUInfeedOutfeedSessionHook
from tests.harness import jobs

COLUMNS = [jobs.embedding('a')]
STEPS = [{'a': np.arange(8) % 10, 'last': np.full(8, step == 3), 'label': np.ones(8, np.float32)}
         for step in range(4)]
seen = []


class StopOnSignal(TPUInfeedOutfeedSessionHook):
    """Ends the training when the data says that it ends, as jobs with unknown length do."""

    @staticmethod
    def get_stopping_signals_and_name(features):
        return {'stopping': features['last']}, 'signals'

    def begin(self):
        super().begin()
        seen.append('begin')

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._dequeue_ops)

    def after_run(self, run_context, run_values):
        stopping = run_values.results['signals']['stopping']
        seen.append(stopping.tolist())
        if stopping.all():
            run_context.request_stop()

    def end(self, session):
        super().end(session)
        seen.append('end')


class Forgetful(TPUInfeedOutfeedSessionHook):
    def after_create_session(self, session, coord):
        del session, coord


class Threads(TPUInfeedOutfeedSessionHook):
    def _run_infeed(self, queue_ctx, session):
        del queue_ctx, session


def make(tmp_path, feed_hook, hosts=1, cores=2, iterations=1):
    config = jobs.run_config(tmp_path, hosts, cores, iterations)
    config = config.replace(tpu_config=config.tpu_config._replace(
        experimental_feed_hook=feed_hook))
    return jobs.estimator(jobs.linear_model_fn(COLUMNS), COLUMNS, config)


@pytest.fixture(autouse=True)
def _nothing_seen():
    seen.clear()


@pytest.mark.parametrize('hosts, cores', [(1, 2), (2, 1)])
def test_it_feeds_and_gets_the_signals_of_all_cores_in_every_loop(tmp_path, hosts, cores, caplog):
    caplog.set_level('INFO', 'tensorflow')
    made = make(tmp_path, StopOnSignal, hosts, cores)
    made.train(jobs.input_fn_of(STEPS), steps=100)
    assert seen == ['begin', [False] * 8, [False] * 8, [False] * 8, [True] * 8, 'end']
    assert made.get_variable_value('global_step') == 4
    assert 'Use user implemented tpu infeed outfeed session hook class.' in caplog.text


def test_one_that_changes_nothing_trains_as_without_it(tmp_path):
    values = []
    for number, hook in enumerate([None, TPUInfeedOutfeedSessionHook]):
        made = make(tmp_path / str(number), hook)
        made.train(jobs.input_fn_of(STEPS), steps=4)
        values.append(made.get_variable_value('w/kernel'))
    np.testing.assert_array_equal(*values)


def test_replacing_the_threads_is_refused_by_name(tmp_path):
    with pytest.raises(ete.UnsupportedError, match='E907 .* Threads defines _run_infeed'):
        make(tmp_path, Threads)


def test_one_that_never_starts_the_input_is_told_so(tmp_path):
    with pytest.raises(ete.UnsupportedError, match='E907 .*must call that of TPUInfeedOutfeed'):
        make(tmp_path, Forgetful).train(jobs.input_fn_of(STEPS), steps=1)
