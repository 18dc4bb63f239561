"""Sections 16 and 17 of the runner's specification: lost sessions, lost inputs, SIGTERM."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import groups, jobs
from harness.processes import ROOT

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.runner import job_run
from estimator_tpu_embedding.runner.run_sessions import SessionLostError

pytestmark = pytest.mark.no_rerun
TABLE = 'dense_features/f_embedding/embedding_weights'
STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 30


def make(directory, hosts=2, cores=2, **kwargs):
    columns = [jobs.embedding('f', initializer=tf.ones_initializer())]
    return jobs.estimator(
        jobs.linear_model_fn(columns), columns,
        jobs.run_config(directory, hosts, cores, **{'save_checkpoints_steps': 2, **kwargs}),
        batch_size=4)


def results(directory):
    return [tf.train.load_variable(str(directory), name)
            for name in ('global_step', TABLE, f'{TABLE}/Adagrad', 'w/kernel')]


class Losing(tf.train.SessionRunHook):
    """Raises an error after the runs of the given numbers."""

    def __init__(self, error, runs):
        self._error, self._runs, self._number = error, runs, 0

    def after_run(self, run_context, run_values):
        self._number += 1
        if self._number in self._runs:
            raise self._error(None, None, 'preempted')


def test_a_lost_session_is_made_anew_and_training_goes_on_from_the_checkpoint(tmp_path):
    make(tmp_path / 'plain').train(jobs.input_fn_of(STEPS), steps=8)
    estimator = make(tmp_path / 'lost')
    assert estimator.train(jobs.input_fn_of(STEPS), steps=8,
                           hooks=[Losing(tf.errors.AbortedError, {2, 3})]) is estimator
    for got, want in zip(results(tmp_path / 'lost'), results(tmp_path / 'plain')):
        np.testing.assert_array_equal(got, want)  # All batches are alike.


def test_c18_c23_what_is_meant_by_differences_is_done_once_however_often_sessions_are_lost(
        tmp_path, caplog):
    def train(where, rows, hosts, optimizer, strategy, hooks=(), **options):
        columns = [jobs.embedding('f', rows, initializer=tf.ones_initializer())]
        jobs.estimator(
            jobs.linear_model_fn(columns), columns, jobs.run_config(
                tmp_path / where, hosts, save_checkpoints_steps=4,
                checkpoint=ete.CheckpointOptions(**options)),
            batch_size=4, optimizer=optimizer, strategy=strategy).train(
                jobs.input_fn_of(STEPS), steps=6, hooks=list(hooks))

    train('plain', 10, 2, ete.StochasticGradientDescentParameters(.5), 'mod')
    shutil.copytree(tmp_path / 'plain', tmp_path / 'lost')
    caplog.set_level('INFO')
    for where, hooks in (('plain', []), ('lost', [Losing(tf.errors.AbortedError, {1, 3})])):
        train(where, 12, 1, ete.AdagradParameters(.5), 'div', hooks,
              grow=['embedding_weights'], reset_slots=['f_embedding/embedding_weights'])
        line, = {record.getMessage() for record in caplog.records
                 if 'train: checkpoint model.ckpt-6: ' in record.getMessage()}
        assert f'rows 10 to 11 of "{TABLE}" are new; the rows of "{TABLE}" are brought from mod ' \
            f'on 2 hosts to div on 1 hosts; the slots of "{TABLE}" begin with initial' in line
    plain, lost = results(tmp_path / 'plain'), results(tmp_path / 'lost')
    assert plain[0] == 12 and (plain[1][10:] == 1).all()
    for got, want in zip(lost, plain):
        np.testing.assert_array_equal(got, want)


def test_a_lost_session_restores_no_rows_that_lie_otherwise_than_in_the_graph(tmp_path):
    class Damaging(Losing):
        def after_run(self, run_context, run_values):
            for path in tmp_path.glob('model.ckpt-[246].data*'):
                os.truncate(path, 1)
            super().after_run(run_context, run_values)

    make(tmp_path, hosts=2).train(jobs.input_fn_of(STEPS), steps=2)
    with pytest.raises(SessionLostError, match='E802 .*model.ckpt-0, whose tables are others'):
        make(tmp_path, hosts=1).train(jobs.input_fn_of(STEPS), steps=4,
                                      hooks=[Damaging(tf.errors.AbortedError, {1})])


def test_an_evaluation_that_loses_its_session_begins_again(tmp_path):
    estimator = make(tmp_path)
    estimator.train(jobs.input_fn_of(STEPS), steps=2)
    want = estimator.evaluate(jobs.input_fn_of(STEPS), steps=3)
    assert estimator.evaluate(jobs.input_fn_of(STEPS), steps=3, hooks=[
        Losing(tf.errors.UnavailableError, {1})]) == want


def test_input_that_is_lost_is_opened_anew(tmp_path, monkeypatch):
    plain, drawn = job_run.drawing, []

    def failing(session, number, feed):
        draw = plain(session, number, feed)

        def one():
            if number == 1:
                drawn.append(1)
                if len(drawn) == 4:
                    raise tf.errors.UnavailableError(None, None, 'lost')
            return draw()
        return one

    monkeypatch.setattr(job_run, 'drawing', failing)
    make(tmp_path).train(jobs.input_fn_of(STEPS), max_steps=8)
    assert results(tmp_path)[0] == 8 and len(drawn) > 8


def test_sessions_that_are_lost_again_and_again_are_an_error(tmp_path):
    class Hopeless(tf.train.SessionRunHook):
        def before_run(self, run_context):
            raise tf.errors.UnavailableError(None, None, 'never there')

    with pytest.raises(SessionLostError, match='E802 session: one of 5 in a row must make a step'):
        make(tmp_path).train(jobs.input_fn_of(STEPS), steps=8, hooks=[Hopeless()])


JOB = textwrap.dedent("""
    import os, sys
    sys.path.insert(0, sys.argv.pop())
    os.environ['TF_USE_LEGACY_KERAS'] = '1'
    import tensorflow.compat.v1 as tf
    from harness import jobs
    from runner import recovery_test

    class AwaitSignal(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if run_context.session.run(tf.train.get_global_step()) == 6:
                print('run 6', flush=True)
                sys.stdin.readline()

    recovery_test.make(sys.argv[1], iterations=3, save_checkpoints_steps=1000).train(
        jobs.input_fn_of(recovery_test.STEPS), max_steps=30, hooks=[AwaitSignal()])
    print('not reached')
    """)


def test_sigterm_saves_the_steps_that_were_made_and_ends_the_process(tmp_path):
    lines = []
    with groups.running(
            [sys.executable, '-c', JOB, tmp_path, ROOT / 'tests'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while 'run 6' not in lines:
            lines.append(process.stdout.readline().strip())
            assert lines[-1] or process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate('go on', timeout=groups.DEADLINE)
    assert process.returncode == -signal.SIGTERM and 'not reached' not in rest, errors
    step = results(tmp_path)[0]
    assert 6 <= step < 30
    make(tmp_path).train(jobs.input_fn_of(STEPS), max_steps=30)
    make(tmp_path / 'plain').train(jobs.input_fn_of(STEPS), max_steps=30)
    for got, want in zip(results(tmp_path), results(tmp_path / 'plain')):
        np.testing.assert_array_equal(got, want)
