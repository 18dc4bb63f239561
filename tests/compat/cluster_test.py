"""Plain Estimators in the real processes of a cluster, by `etpe run` and TF_CONFIG."""

import pathlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.processes import ROOT, run_cluster

JOB = ROOT / 'tests' / 'scripts' / 'cluster.py'
STEPS = 20
LATE = 2
"""The most steps that a task makes after the last one: the step that it is in, and one more if the
global step that it read in that one was the older.
"""
X = np.arange(24, dtype=np.float64).reshape(12, 2) / 10
Y = X @ [[1], [-2]] + 3


def run(directory, strategy, **tasks):
    outputs = run_cluster(tasks, JOB, directory, strategy, STEPS)
    assert all(f'ended {name.split()[0]} None' in output for name, output in outputs.items())
    return outputs


def variable(directory, name):
    return tf.train.load_variable(str(directory), name)


def check_constant_steps(directory):
    """The gradients of the job are 1 and the mean of X: each step, of whoever, is the same.

    What the chief saves last may lack parts of the last steps of the worker, or have some that
    the global step lacks.
    """
    step = variable(directory, 'global_step')
    assert STEPS <= step <= STEPS + 2 * LATE
    for made in (variable(directory, 'bias')[0] / -.125,
                 *(1 - variable(directory, 'weights')[:, 0]) / (.125 * X.mean(0))):
        assert made == pytest.approx(round(made), abs=1e-4)
        assert abs(made - step) <= LATE


@pytest.mark.soak
def test_chief_worker_parameter_server_and_evaluator_share_one_training(tmp_path):
    outputs = run(tmp_path, 'none', chief=1, worker=1, ps=1, evaluator=1)
    check_constant_steps(tmp_path)
    assert 'loss = ' in outputs['worker 0'] and 'Saving checkpoints' not in outputs['worker 0']
    [export] = (tmp_path / 'export' / 'final').iterdir()
    assert (export / 'saved_model.pb').exists()
    [events] = (tmp_path / 'eval').iterdir()
    last = list(tf.train.summary_iterator(str(events)))[-1]
    assert last.step == variable(tmp_path, 'global_step')


@pytest.mark.soak
def test_two_mirrored_workers_train_as_one_process_does_with_the_batches_of_both(tmp_path):
    run(tmp_path, 'mwms', worker=2)
    weights, bias = np.ones([2, 1]), 0.
    for step in range(STEPS):
        rows = slice(4 * (step % 3), 4 * (step % 3) + 4)
        error = X[rows] @ weights + bias - Y[rows]
        weights = weights - .125 * 2 * X[rows].T @ error / 4
        bias = bias - .125 * 2 * error.mean()
    for directory in (tmp_path, pathlib.Path(tmp_path, 'tmp_worker_1')):
        assert variable(directory, 'global_step') == STEPS
        np.testing.assert_allclose(variable(directory, 'weights'), weights, rtol=1e-4)
        np.testing.assert_allclose(variable(directory, 'bias'), [bias], rtol=1e-4)
