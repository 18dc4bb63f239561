"""Sections 9.5 to 9.7 of the runner's specification: hooks in order, cadence, finite weights."""

import logging
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete

STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 20


class Named(tf.train.SessionRunHook):
    """Writes down when it begins."""

    def __init__(self, name, order):
        self._name, self._order = name, order

    def begin(self):
        self._order.append(self._name)


def make(directory, spec_hooks=(), config=None, **kwargs):
    columns = [jobs.embedding('f')]

    def model_fn(features, labels, mode, params):
        spec = jobs.linear_model_fn(columns)(features, labels, mode, params)
        return spec._replace(training_hooks=list(spec_hooks), evaluation_hooks=list(spec_hooks),
                             prediction_hooks=list(spec_hooks))

    return jobs.estimator(model_fn, columns, jobs.run_config(
        directory, 2, 2, **{'iterations': 4, **kwargs}), batch_size=4)


@pytest.fixture
def sessions(monkeypatch):
    """The class names of the hooks of every monitored session."""
    seen = []
    plain = tf.train.MonitoredSession

    class Recorded(plain):
        def __init__(self, session_creator=None, hooks=None, **kwargs):
            seen.append([type(hook).__name__ for hook in hooks])
            super().__init__(session_creator, hooks, **kwargs)

    monkeypatch.setattr(tf.train, 'MonitoredSession', Recorded)
    return seen


def test_hooks_come_in_the_order_of_the_original(tmp_path, sessions):
    order = []
    estimator = make(tmp_path, [Named('of the spec', order)], save_summary_steps=1,
                     log_step_count_steps=2)
    kwargs = {'input_fn': jobs.input_fn_of(STEPS), 'hooks': [Named('of the call', order)]}
    estimator.train(**kwargs, steps=4)
    estimator.evaluate(**kwargs, steps=2)
    list(estimator.predict(jobs.input_fn_of(STEPS[:1]), hooks=kwargs['hooks']))
    assert order == ['of the call', 'of the spec'] * 3
    assert sessions == [
        # The guards are before the saver; else the order is that of section 9.5. A FeedsKept
        # stands for a hook of the user: of the call, _TPUStopAtStepHook, of the spec.
        ['FiniteLoss', 'FiniteWeights', 'SaverHook', 'SummarySaverHook',
         'FeedsKept', 'FeedsKept', 'SummaryWriters', 'Infeed',
         'LoggingTensorHook', 'RateHook', 'FeedsKept', 'SavesFinished', 'SummariesSurvive',
         'StepsPerRun'],
        ['FeedsKept', 'SummaryWriters', 'Infeed', 'FinalOpsHook', 'FeedsKept',
         'SummariesSurvive', 'StepsPerRun'],
        ['FeedsKept', 'SummaryWriters', 'Infeed', 'FeedsKept',
         'SummariesSurvive', 'StepsPerRun']]


@pytest.mark.parametrize('iterations, save_steps, want', [
    (4, 2, [0, 4, 8, 10]), (4, 5, [0, 8, 10]), (4, 8, [0, 8, 10]), (1, 5, [0, 5, 10]),
    (40, 3, [0, 10])])
def test_checkpoints_are_written_at_loop_ends_only(tmp_path, iterations, save_steps, want):
    make(tmp_path, iterations=iterations, save_checkpoints_steps=save_steps).train(
        jobs.input_fn_of(STEPS), steps=10)
    assert sorted(int(path.stem.split('-')[1]) for path in tmp_path.glob('*.index')) == want


@pytest.mark.parametrize('seconds, want', [(1e-9, [0, 4, 8, 10]), (10**6, [0, 10])])
def test_checkpoints_may_be_written_after_a_time_and_without_the_graph(tmp_path, seconds, want):
    make(tmp_path, save_checkpoints_steps=None, save_checkpoints_secs=seconds,
         checkpoint_save_graph_def=False).train(jobs.input_fn_of(STEPS), steps=10)
    assert sorted(int(path.stem.split('-')[1]) for path in tmp_path.glob('*.index')) == want
    assert not list(tmp_path.glob('*.meta')) + list(tmp_path.glob('graph.pbtxt'))
    make(tmp_path, checkpoint_save_graph_def=True).train(jobs.input_fn_of(STEPS), steps=1)
    assert (tmp_path / 'graph.pbtxt').exists()
    assert [path.name for path in tmp_path.glob('*.meta')] == ['model.ckpt-11.meta']


def test_with_a_time_as_loop_lines_come_after_that_time_and_not_after_steps(tmp_path, caplog):
    estimator = make(tmp_path, iterations='1h', log_step_count_steps=1)
    loops = jobs.EveryRun()
    with caplog.at_level(logging.INFO, 'tensorflow'):
        estimator.train(jobs.input_fn_of(STEPS), steps=20, hooks=[loops])
    assert loops.runs == 2  # One step, and then as many as fit in an hour.
    assert re.findall(r'loss = \S+, step = (\d+)', caplog.text) == ['1']
    assert 'examples/sec' not in caplog.text


def test_without_logs_summaries_and_own_samples_nothing_of_that_is_among_the_hooks(
        tmp_path, sessions):
    def model_fn(features, labels, mode, params):
        loss = tf.square(tf.get_variable('w', []))
        return jobs.trained_spec(mode, loss)

    for mode in (ete.InputPipelineConfig.PER_HOST_V2, ete.InputPipelineConfig.BROADCAST):
        config = jobs.run_config(tmp_path, 1, 2).replace(tpu_config=ete.TPUConfig(
            per_host_input_for_training=mode))
        ete.TPUEstimator(model_fn, config=config, train_batch_size=4).train(
            lambda params: tf.data.Dataset.from_tensors((np.ones(4), np.ones(4))).repeat(), steps=2)
    per_host, broadcast = sessions
    assert set(per_host) - set(broadcast) == {'FiniteWeights'}


def test_summaries_of_v1_that_core_0_makes_in_model_fn_or_scaffold_fn_are_written(tmp_path):
    def model_fn(features, labels, mode, params):
        loss = tf.get_variable('w', []) * 0. + tf.reduce_mean(features['x'])
        tf.summary.scalar('mine', loss)

        def scaffold_fn():
            tf.summary.scalar('late', 2. * loss)
            return tf.train.Scaffold()
        return jobs.trained_spec(mode, loss)._replace(scaffold_fn=scaffold_fn)

    ete.TPUEstimator(model_fn, config=jobs.run_config(tmp_path, 1, 2, 1, save_summary_steps=1),
                     train_batch_size=4).train(jobs.input_fn_of([
                         {'x': np.float32([1, 3, 5, 7]), 'label': np.zeros(4)}]), steps=1)
    found = jobs.summaries_of(tmp_path)
    # Core 0 has the samples 1 and 3; the loss of the run is the mean over both cores.
    assert [[*found[tag].values()] for tag in ('mine', 'late', 'loss')] == [[2.], [4.], [4.]]


def test_weights_that_are_no_numbers_end_training_before_they_are_saved(tmp_path):
    columns = [jobs.embedding('f')]

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        loss = tf.reduce_mean(net) + tf.sqrt(0. * tf.get_variable('w', []))  # 0, its slope is NaN.
        return jobs.trained_spec(mode, loss)

    estimator = jobs.estimator(model_fn, columns, jobs.run_config(tmp_path, 1, 2), batch_size=4)
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
            'E804 variable "w:0": its values must be finite; got "Gradient for w:0 is NaN : Tensor '
            'had NaN values", at global step 0')) as caught:
        estimator.train(jobs.input_fn_of(STEPS), steps=1)
    assert caught.value.message == str(caught.value)
    assert isinstance(caught.value, tf.train.NanLossDuringTrainingError)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('-0')
