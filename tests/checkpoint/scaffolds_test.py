"""A scaffold of a class of the user's stays the object that it is, and its methods are called."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.errors import ConfigError


class Counting(tf.train.Scaffold):
    """Adds an operation to the graph when it is finalized, and has properties of its own."""

    def __init__(self, calls):
        super().__init__()
        self._calls, self.added = calls, None

    def finalize(self):
        self._calls.append('finalize')
        self.added = tf.identity(tf.train.get_global_step() + 100, name='added')
        return super().finalize()

    @property
    def init_fn(self):
        return lambda session: self._calls.append('init_fn')


class Reads(tf.train.SessionRunHook):
    """Holds a scaffold, as hooks of users do, and reads what its finalize has added."""

    def __init__(self, scaffold, seen, fails=False):
        self._scaffold, self._seen, self._fails = scaffold, seen, fails

    def after_create_session(self, session, coord):
        assert self._scaffold.saver is not None and self._scaffold.init_op is not None
        self._seen.append(int(session.run(self._scaffold.added)))

    def before_run(self, run_context):
        if self._fails:
            self._fails = False
            raise tf.errors.AbortedError(None, None, 'lost')


def job(directory, calls, seen, *, hosts=1, fails=False, strategy='div', **kwargs):
    """A TPUEstimator whose model has such a scaffold, and a hook that holds it in training."""
    columns = [jobs.embedding('f')]

    def model_fn(features, labels, mode, params):
        spec = jobs.linear_model_fn(columns)(features, labels, mode, params)
        made = []

        def scaffold_fn():
            made.append(Counting(calls))
            return made[-1]

        class Late(Reads):
            def begin(self):
                self._scaffold = made[-1]

        hooks = [Late(None, seen, fails)] if mode == 'train' else []
        return spec._replace(scaffold_fn=scaffold_fn, training_hooks=hooks)

    return jobs.estimator(
        model_fn, columns, jobs.run_config(directory, hosts), strategy=strategy, **kwargs)


def batches(params):
    return tf.data.Dataset.from_tensors(({'f': np.int64(1)}, np.float32(1))).repeat(16).batch(
        params['batch_size'], drop_remainder=True)


@pytest.mark.parametrize('first, second', [
    ({}, {}), ({}, {'hosts': 2}), ({'strategy': 'mod', 'hosts': 2}, {'strategy': 'mod'}),
    ({'use_tpu': False}, {'use_tpu': False}), ({}, {'use_tpu': False})])
def test_its_finalize_is_called_once_per_run_and_the_hooks_of_the_model_see_what_it_adds(
        tmp_path, first, second):
    calls, seen = [], []
    job(tmp_path, calls, seen, **first).train(batches, steps=1)
    assert (calls, seen) == (['finalize', 'init_fn'], [100])
    made = job(tmp_path, calls, seen, **second)
    for verb in (lambda: made.train(batches, steps=1), lambda: made.evaluate(batches, steps=1),
                 lambda: list(made.predict(batches))):
        calls.clear()
        verb()
        assert calls.count('finalize') == 1
    assert seen == [100, 101]  # After the step that the second training has restored.


def test_a_warm_start_that_moves_rows_leaves_it_in_place(tmp_path):
    calls, seen = [], []
    job(tmp_path / 'a', calls, seen, strategy='mod', hosts=2).train(batches, steps=1)
    calls.clear()
    job(tmp_path / 'b', calls, seen, strategy='mod', warm_start_from=str(tmp_path / 'a')).train(
        batches, steps=1)
    assert (calls, seen) == (['finalize', 'init_fn'], [100, 100])


@pytest.mark.parametrize('use_tpu', [True, False])
def test_a_saver_that_finalize_sets_is_refused_where_it_would_bypass_ours(tmp_path, use_tpu):
    class Changes(tf.train.Scaffold):
        def finalize(self):
            self._saver = tf.train.Saver()
            return super().finalize()

    columns = [jobs.embedding('f')]

    def model_fn(features, labels, mode, params):
        spec = jobs.linear_model_fn(columns)(features, labels, mode, params)
        return spec._replace(scaffold_fn=Changes)

    made = jobs.estimator(model_fn, columns, jobs.run_config(tmp_path), use_tpu=use_tpu)
    with pytest.raises(ConfigError, match='E928 scaffold: its finalize must leave the saver'):
        made.train(batches, steps=1)


def test_a_scaffold_of_a_plain_estimator_is_called_as_tensorflow_does(tmp_path):
    calls = []

    def model_fn(features, labels, mode):
        loss = tf.reduce_mean(tf.get_variable('w', [])) + 0 * tf.reduce_sum(labels)
        return _legacy.load().EstimatorSpec(
            mode, loss=loss, scaffold=Counting(calls),
            train_op=tf.assign_add(tf.train.get_global_step(), 1))

    _legacy.load().Estimator(model_fn, str(tmp_path)).train(
        lambda: batches({'batch_size': 8}), steps=1)
    ete.TPUEstimator(
        lambda features, labels, mode, params: model_fn(features, labels, mode), use_tpu=False,
        config=ete.RunConfig(model_dir=str(tmp_path))).train(
            lambda params: batches({'batch_size': 8}), max_steps=2)
    # The second restores, and initializes nothing.
    assert calls == ['finalize', 'init_fn', 'finalize']
