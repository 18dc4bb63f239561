"""Rows H06, H07 and H11: how training ends, by a signal or a failure at the very end."""

import pathlib

import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import CheckpointWriteError
from estimator_tpu_embedding.runner.faults import SessionLostError

STEPS = 6


def model_fn(features, labels, mode, params):
    w = tf.get_variable('w', [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(features @ w[:, tf.newaxis] - labels))
    train_op = tf.train.GradientDescentOptimizer(.1).minimize(loss, tf.train.get_global_step())
    return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def batches(params):
    return tf.data.Dataset.from_tensors((tf.ones([params['batch_size'], 2]),
                                         tf.ones([params['batch_size'], 1]))).repeat()


def train(directory, hooks=(), use_tpu=True, iterations=1, steps=STEPS, listeners=None, **kwargs):
    ete.TPUEstimator(
        model_fn, config=jobs.run_config(directory, iterations=iterations, **kwargs),
        train_batch_size=4, use_tpu=use_tpu).train(
            batches, max_steps=steps, hooks=list(hooks), saving_listeners=listeners)


def steps_on_disk(directory):
    return sorted(int(path.stem.rpartition('-')[2])
                  for path in pathlib.Path(directory).glob('*.index'))


ERRORS = {
    'Unavailable': lambda: tf.errors.UnavailableError(None, None, 'as asked'),
    'Aborted': lambda: tf.errors.AbortedError(None, None, 'as asked'),
    'OutOfRange': lambda: tf.errors.OutOfRangeError(None, None, 'as asked'),
    'OSError': lambda: OSError(28, 'as asked')}


class FailsAtEnd(tf.train.SessionRunHook):
    def __init__(self, error):
        self._error = error

    def end(self, session):
        raise self._error


@pytest.mark.parametrize('use_tpu', [True, False])
@pytest.mark.parametrize('error', ERRORS)
def test_h11_a_hook_that_fails_at_the_end_fails_the_training(tmp_path, error, use_tpu):
    with pytest.raises((tf.errors.OpError, OSError, RuntimeError), match='as asked') as caught:
        train(tmp_path, [FailsAtEnd(ERRORS[error]())], use_tpu)
    if use_tpu:  # Nobody may take it for the end of data; a plain Estimator raises what it is.
        assert not isinstance(caught.value, tf.errors.OutOfRangeError)
        assert steps_on_disk(tmp_path) == [0, STEPS]


@pytest.mark.parametrize('save_steps', [100, STEPS])
@pytest.mark.parametrize('error', ERRORS)
def test_h11_a_last_save_that_fails_fails_the_training_and_leaves_the_one_before(
        tmp_path, monkeypatch, error, save_steps):
    save = tf.train.Saver.save

    def fails(self, session, path, global_step=None, **kwargs):
        if global_step == STEPS:
            raise ERRORS[error]()
        return save(self, session, path, global_step=global_step, **kwargs)

    monkeypatch.setattr(tf.train.Saver, 'save', fails)
    with pytest.raises(CheckpointWriteError, match='E621 step 6.*as asked'):
        train(tmp_path, save_checkpoints_steps=save_steps)
    assert steps_on_disk(tmp_path) == [0]
    assert recover(str(tmp_path)).step == 0


class Listener(tf.train.CheckpointSaverListener):
    """Fails after every save from a step on."""

    def __init__(self, error, first):
        self._error, self._first = error, first

    def after_save(self, session, step):
        if step >= self._first:
            raise self._error


@pytest.mark.parametrize('first', [3, STEPS])
@pytest.mark.parametrize('error', ['Unavailable', 'Aborted'])
def test_h11_a_listener_that_always_loses_the_session_ends_the_training(tmp_path, error, first):
    with pytest.raises(SessionLostError, match='E802'):
        train(tmp_path, save_checkpoints_steps=3, listeners=[Listener(ERRORS[error](), first)])
    assert steps_on_disk(tmp_path)[-1] == first  # And no step more than was asked for.


def test_h11_a_session_that_is_lost_after_the_last_step_is_not_made_again(tmp_path):
    class Once(tf.train.SessionRunHook):
        errors = [ERRORS['Aborted']()]

        def after_run(self, run_context, run_values):
            if run_context.session.run(tf.train.get_global_step()) == STEPS and self.errors:
                raise self.errors.pop()

    with pytest.raises(SessionLostError, match='E802 session: the last one must reach the end.*6'):
        train(tmp_path, [Once()], save_checkpoints_steps=STEPS)
    assert steps_on_disk(tmp_path) == [0, STEPS]
