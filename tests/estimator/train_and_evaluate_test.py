"""Section 13 of the runner's specification: evaluations inside a training that is open."""


import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.parts import soak_except

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy

ROWS = 12
nightly = _legacy.load()


def batches(count, seed=0):
    """Global batches of 8; ids and labels are random."""
    random = np.random.default_rng(seed)
    return jobs.input_fn_of([{'f': random.integers(0, ROWS, 8),
                              'label': random.normal(size=8).astype(np.float32)}
                             for _ in range(count)])


def make(directory, hosts, cores, strategy='div', **kwargs):
    columns = [jobs.embedding('f', ROWS)]
    return jobs.estimator(
        jobs.linear_model_fn(columns, lambda: ete.CrossShardOptimizer(
            tf.train.AdamOptimizer(.1))), columns,
        jobs.run_config(directory, hosts, cores, **{'save_checkpoints_steps': 4, **kwargs}),
        strategy=strategy)


def variables(directory):
    return {name: tf.train.load_variable(str(directory), name)
            for name, _ in tf.train.list_variables(str(directory))
            if not name.startswith('signal_early_stopping')}


def exporters():
    return [nightly.LatestExporter('latest', jobs.serving, exports_to_keep=2),
            nightly.FinalExporter('final', jobs.serving),
            nightly.BestExporter('best', jobs.serving, exports_to_keep=1)]


def evaluated_in(directory):
    """The steps whose checkpoints were evaluated."""
    return {event.step for path in (directory / 'eval').glob('events*')
            for event in tf.train.summary_iterator(str(path)) if event.summary.value}


def run(estimator, max_steps, hooks=(), **kwargs):
    return nightly.train_and_evaluate(
        estimator, nightly.TrainSpec(batches(max_steps), max_steps=max_steps, hooks=list(hooks)),
        nightly.EvalSpec(batches(2, seed=1), **{'steps': 2, 'start_delay_secs': 0,
                                                'throttle_secs': 0, **kwargs}))


@pytest.mark.parametrize('hosts, cores, strategy', soak_except([
    (1, 1, 'div'), (1, 4, 'mod'), (2, 2, 'div'), (4, 1, 'mod')], 3))
def test_evaluations_and_exports_on_the_way_change_no_bit_of_the_training(
        tmp_path, hosts, cores, strategy):
    make(tmp_path / 'alone', hosts, cores, strategy).train(batches(12), max_steps=12)
    estimator = make(tmp_path / 'both', hosts, cores, strategy)
    results, exports = run(estimator, 12, exporters=exporters())
    got, want = variables(tmp_path / 'both'), variables(tmp_path / 'alone')
    assert got.keys() == want.keys() and results['global_step'] == 12
    for name in want:
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)
    assert evaluated_in(tmp_path / 'both') == {4, 8, 12}
    assert len(exports) == 3
    for name, count in (('latest', 2), ('final', 1), ('best', 1)):
        made = sorted((tmp_path / 'both' / 'export' / name).glob('[0-9]*'))
        assert len(made) == count, name


def test_a_metric_that_does_not_get_better_stops_training(tmp_path):
    columns = [jobs.embedding('f', ROWS)]

    def model_fn(features, labels, mode, params):
        spec = jobs.linear_model_fn(columns)(features, labels, mode, params)
        step = tf.cast(tf.train.get_global_step(), tf.float32)
        return spec._replace(eval_metrics=(  # It gets worse from step to step.
            lambda x: {'worse': tf.metrics.mean(x)}, [tf.fill(tf.shape(labels), step)]))

    estimator = jobs.estimator(model_fn, columns, jobs.run_config(
        tmp_path, 2, 2, save_checkpoints_steps=2))
    hook = nightly.experimental.stop_if_no_decrease_hook(
        estimator, 'worse', max_steps_without_decrease=4, run_every_secs=None, run_every_steps=1)
    results, _ = run(estimator, 40, [hook])
    # Evaluated at 2, 4 and 6, four steps after the best. At 8, where the hook read the step of
    # this loop as it was, and that of the one before as it became: it looks where it moved.
    assert results['global_step'] in (6, 8)


def test_evaluations_keep_the_time_between_them_but_for_that_of_the_last_step(tmp_path):
    results, exports = run(make(tmp_path, 1, 1), 12, throttle_secs=600)
    assert evaluated_in(tmp_path) == {4, 12} and exports == []  # Not 8, nor what began it all.
    assert set(results) == {'loss', 'mean_label', 'mean_square', 'global_step'}
