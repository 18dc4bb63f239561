"""`session_support` on a system without heartbeats: what 2.15 logs and returns on a CPU."""

import logging

import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.estimator import session_support as support


def test_the_hook_says_once_per_session_that_no_worker_is_watched_and_changes_nothing(
        tmp_path, caplog):
    with tf.Graph().as_default(), caplog.at_level(logging.INFO, 'tensorflow'):
        train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        hook = support.GracefulShutdownHook(
            str(tmp_path / 'model.ckpt'), on_shutdown_hooks=[support.ResetComputation()])
        with tf.train.MonitoredSession(hooks=[hook]) as session:
            assert [session.run(train), session.run(train)] == [1, 2]
    said = [line for line in caplog.messages if 'graceful' in line or 'heartbeat' in line]
    assert said == ['Installing graceful shutdown hook.',
                    'No workers support heartbeats. Failure handling will be disabled.']
    assert not list(tmp_path.iterdir())


def test_the_hook_takes_the_saver_of_the_graph_if_there_is_one_and_needs_a_global_step(caplog):
    with tf.Graph().as_default():
        tf.get_variable('v', [])
        saver = tf.train.Saver()
        hook = support.GracefulShutdownHook('model.ckpt')
        assert hook.saver() is None
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
        assert hook.saver() is saver
        with pytest.raises(ValueError, match='Saver defined but no global step.  Run '):
            hook.after_create_session(None, None)
        tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
        assert hook.saver() is None
        assert 'The graph has 2 savers.' in caplog.text
        assert support.GracefulShutdownHook('model.ckpt', saver).saver() is saver


def test_a_reset_makes_a_monitored_session_begin_anew():
    class Once(tf.train.SessionRunHook):
        sessions = 0

        def after_create_session(self, session, coord):
            self.sessions += 1

        def after_run(self, run_context, run_values):
            if self.sessions == 1:
                raise support.CoordinatorShutdownException

    with tf.Graph().as_default():
        one, once = tf.constant(1), Once()
        with tf.train.MonitoredSession(hooks=[once]) as session:
            assert session.run(one) == 1
    assert once.sessions == 2


def test_a_watchdog_says_what_it_does_not_do(caplog):
    with tf.Graph().as_default(), tf.Session() as session, \
            caplog.at_level(logging.INFO, 'tensorflow'):
        support.start_worker_watchdog(session, shutdown_timeout=50)
        support.stop_worker_watchdog()
        with support.WatchdogManager(session, ping_interval=1, shutdown_timeout=3):
            pass
    assert caplog.messages == [line.format(*times) for times in ((50, 5), (3, 1)) for line in (
        'Enabling watchdog timer with {} second timeout and {} second ping interval.',
        'No workers support heartbeats. Failure handling will be disabled.',
        'Stopping worker watchdog.')]
