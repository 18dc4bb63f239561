"""Where the time of a step goes, and the summaries of tables: what a user sees in TensorBoard."""

import itertools
import json
import re
import threading
import time
import urllib.parse

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.runner import progress, steps_per_run, summaries
from tests.harness import jobs
from tests.harness.tensorboard import served

PHASES = {f'tpu_embedding/secs_per_step/{name}'
          for name in ('input', 'enqueue', 'lookup', 'dense', 'update')}


def endless(params):
    """Of four samples the ids 1, 1, 2 and 3, 4 in two features of one table."""
    per_core = params['batch_size']
    first = params['context'].current_host * 2
    return tf.data.Dataset.from_tensors(({
        'f': np.int64([[1], [1]]), 'g': np.int64([[2 + first], [3 + first]])},
        np.float32([0, 0]))).repeat() if per_core == 2 else None


def shared_job(model_dir, hosts, wrap=lambda net: net, **kwargs):
    columns = ete.shared_embedding_columns(
        [jobs.identity_column('f'), jobs.identity_column('g')], 2, 'sum',
        initializer=tf.constant_initializer(1.0), shared_embedding_collection_name='table')

    def model_fn(features, labels, mode, params):
        net = wrap(tf.keras.layers.DenseFeatures(columns)(features))
        loss = tf.reduce_sum(net)
        if mode != 'train':
            return ete.TPUEstimatorSpec(mode, predictions={'net': net}, loss=loss, eval_metrics=(
                lambda net: {'mean': tf.metrics.mean(net)}, [net]))
        train_op = ete.CrossShardOptimizer(
            tf.train.GradientDescentOptimizer(.1), reduction='weighted_sum').minimize(
            loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    config = jobs.run_config(model_dir, hosts, 1, **kwargs)
    return jobs.estimator(model_fn, columns, config, batch_size=2 * hosts,
                          optimizer=ete.StochasticGradientDescentParameters(0.0))


@pytest.mark.parametrize('hosts', [1, 2])
def test_summaries_tell_of_rows_and_norms_per_table_over_all_features_and_cores(tmp_path, hosts):
    made = shared_job(tmp_path, hosts, save_summary_steps=2, log_step_count_steps=2)
    made.train(endless, steps=4)
    found = jobs.summaries_of(tmp_path)
    # Ids 1, 2, 3 on one host; 4 and 5 besides on the other. Every step is the same.
    assert set(found['tpu_embedding/tbl_table/rows_touched'].values()) == {[3, 5][hosts - 1]}
    # Per core 2 samples x 2 features x 2 numbers, all of them one; so are the gradients.
    for name in ('activation_norm', 'gradient_norm'):
        values = found[f'tpu_embedding/tbl_table/{name}'].values()
        assert list(values) == pytest.approx([np.sqrt(8 * hosts)] * len(values))
    assert PHASES <= found.keys()
    assert {'loss', 'global_step/sec', 'examples/sec'} <= found.keys()
    assert all(value > 0 for value in found['tpu_embedding/checkpoint_secs'].values())
    # TensorBoard puts every one of them into a chart of its custom scalars.
    assert list(found['custom_scalars__config__']) == [0]
    patterns = [one for charts in summaries._LAYOUT.values() for one in charts.values()]
    assert [tag for tag in found if not any(re.fullmatch(one, tag) for one in patterns)] == [
        'custom_scalars__config__']


@pytest.mark.soak
def test_a_real_tensorboard_groups_what_a_training_wrote(tmp_path):
    shared_job(tmp_path / 'm', 1, save_summary_steps=1).train(endless, steps=2)
    with served(tmp_path / 'm') as get:
        layout = json.loads(get('custom_scalars/layout'))
        titles = {one['title']: [chart['title'] for chart in one['chart']]
                  for one in layout['category']}
        assert titles == {group: list(charts) for group, charts in summaries._LAYOUT.items()}
        drawn = json.loads(get('custom_scalars/scalars?run=.&tag=' + urllib.parse.quote(
            summaries._LAYOUT['checkpoints']['seconds to save'])))
    assert list(drawn['tag_to_events']) == ['tpu_embedding/checkpoint_secs']


class Clock:
    """The clock of the parts of steps: it moves only in the dense part of a slow model."""

    def __init__(self, monkeypatch):
        self._now, self._looks, self._steps = 0., 0, 0
        self._looked = threading.Condition()
        monkeypatch.setattr(tf, 'timestamp', lambda: tf.py_func(self._look, [], tf.float64))

    def _look(self):
        with self._looked:
            self._looks += 1
            self._looked.notify_all()
            return self._now

    def slow(self, net):
        """A model that takes a quarter of a second."""
        def take(value):
            with self._looked:  # A step looks when it begins, has looked up, has trained, is done.
                assert self._looked.wait_for(lambda: self._looks >= 4 * self._steps + 2, 240)
                self._steps += 1
                self._now += .25
            return value
        return net + tf.stop_gradient(
            tf.ensure_shape(tf.py_func(take, [net], tf.float32), net.shape) - net)


class Ticks:
    """In place of the module `time`: each look is a second later."""

    def __init__(self):
        self.monotonic = itertools.count().__next__


def test_time_goes_on_the_account_of_what_took_it(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, '_reports', [])

    def slow_input(params):
        def wait(features, label):
            slept = tf.py_func(lambda: time.sleep(.2) or np.float32(0), [], tf.float32)
            return features, label + tf.ensure_shape(slept, [])
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False  # It sleeps when it is asked.
        return endless(params).map(wait).with_options(options)

    shared_job(tmp_path / 'dense', 1, Clock(monkeypatch).slow, iterations=4).train(endless, steps=8)
    monkeypatch.setattr(steps_per_run, 'time', Ticks())
    shared_job(tmp_path / 'input', 1, iterations=4).train(slow_input, steps=8)
    by_dense, by_input = (report.time for report in progress.reports())
    assert (by_dense.lookup, by_dense.dense, by_dense.update) == (0, 8 * .25, 0)
    assert by_input.enqueue >= 8 * .2
    assert by_input.input >= 8  # There are two looks at least for each step.
    assert (by_input.lookup, by_input.dense, by_input.update) == (0, 0, 0)
