"""The sessions of a run: which graphs they rewrite, what follows losses, what people are told."""

import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

from estimator_tpu_embedding.cluster.host_errors import HostLostError, HostUnavailableError
from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.errors import Problem
from estimator_tpu_embedding.runner import progress, run_sessions
from estimator_tpu_embedding.runner.progress import RunReport
from estimator_tpu_embedding.runner.run_sessions import Losses, SessionLostError, shares


def test_a_job_trains_the_same_tables_whatever_grappler_does_and_says_that_it_is_off(
        tmp_path, monkeypatch, caplog):
    columns = [jobs.embedding('f')]
    batch = {'f': np.arange(8), 'label': np.ones(8, np.float32)}
    tables, configs = [], []

    class Config(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            options = session._config.graph_options.rewrite_options
            configs.append((options.disable_meta_optimizer, options.function_optimization))

    own = tf.ConfigProto()
    own.graph_options.rewrite_options.constant_folding = 1  # So it stays as it is.
    for name, limit, config in (('all', 100, own), ('less', 20_000, None), ('no', 100, None)):
        monkeypatch.setattr(run_sessions, 'MOST_NODES_REWRITTEN', limit)
        caplog.clear()
        with caplog.at_level(logging.INFO, 'tensorflow'):
            jobs.estimator(jobs.linear_model_fn(columns), columns,
                           jobs.run_config(tmp_path / name, cores=2, session_config=config)).train(
                jobs.input_fn_of([batch, batch]), steps=2, hooks=[Config()])
        assert ('Grappler is off' in caplog.text) is (name == 'no')
        tables.append(jobs.stored(tmp_path / name, 'dense_features/f_embedding/embedding_weights'))
    assert configs == [(False, 0), (False, 2), (True, 0)]
    np.testing.assert_array_equal(tables[0], tables[1])
    np.testing.assert_array_equal(tables[0], tables[2])


KILLED = Problem('E721', 'host 1', 'it must answer', 'exit -9')
ENDED = Problem('E711', 'worker 1 of this job', 'it must start', 'it ended with status -9')


class FakeCluster:
    """Workers whose starts fail as a test says: `problems` has one per start, or `None`."""

    is_remote, restart_deadline = True, 120.

    def __init__(self, *problems):
        self.problems, self.loss, self.news = list(problems), None, None

    def prepare(self):
        problem = self.problems.pop(0)
        if problem is not None:
            raise HostUnavailableError(problem, hosts=(1,))
        self.loss = None

    def check(self):
        self.loss = self.loss or self.news

    def lost(self, error):
        self.loss = error


def after_losses(*problems, losses=1):
    """Begins a run, and a session after each of some losses of a host at the same step."""
    cluster = FakeCluster(*problems)
    counted = Losses(cluster, RunReport('train', 4, steps=7), lambda: None)
    counted.begin_session()
    for _ in range(losses):
        cluster.lost(HostLostError(KILLED, hosts=(1,)))
        counted.begin_session()
    return cluster


def test_h01_a_worker_that_is_killed_while_it_starts_again_is_started_once_more():
    assert after_losses(None, ENDED, None).problems == []


@pytest.mark.parametrize('problems, losses', [
    ((None, ENDED, ENDED), 1), ((None, ENDED, None), 2), ((None, None, None), 3)])
def test_h01_the_third_loss_at_one_step_ends_the_run_whether_at_a_start_or_in_a_session(
        problems, losses):
    with pytest.raises(SessionLostError, match='E722 train: .*; got number 3 after step 7: '):
        after_losses(*problems, losses=losses)


@pytest.mark.parametrize('is_known', [True, False])
def test_h01_an_error_that_comes_before_the_news_of_its_worker_waits_for_it(is_known, monkeypatch):
    told = []
    monkeypatch.setattr(progress, '_sink', told.append)
    cluster = FakeCluster(None, None)
    losses = Losses(cluster, RunReport('train', 4, steps=7), lambda: None)
    losses.begin_session()
    cluster.news = HostLostError(KILLED, hosts=(1,)) if is_known else None
    losses.begin_session()
    line, = told
    code = 'E721' if is_known else 'E802'
    assert line.startswith(f'train: after step 7: {code} ')


@pytest.mark.parametrize('hosts, said', [
    # 5 rows of 4 floats and as many of their slot: 32 bytes per row.
    (2, 'host 0 holds 3 rows of 96 B, host 1 holds 2 rows of 64 B'),
    (9, 'each host holds from 0 rows of 0 B to 1 row of 32 B')])
def test_the_rows_and_bytes_of_each_host_are_said_or_the_least_and_the_most(hosts, said):
    table = TableSpec(name='t', vocabulary_size=5, dimension=4, optimizer=Adagrad(learning_rate=.1))
    plan = resolve([table], [FeatureSpec(name='f', table='t')], Topology(num_hosts=hosts),
                   batch_size=hosts)
    assert shares(plan) == said
