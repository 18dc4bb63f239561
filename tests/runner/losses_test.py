"""What a run does when it loses workers, and loses them again while they start."""

import pytest

from estimator_tpu_embedding.cluster.faults import HostLostError, HostUnavailableError
from estimator_tpu_embedding.errors import Problem
from estimator_tpu_embedding.runner import progress
from estimator_tpu_embedding.runner.faults import SessionLostError
from estimator_tpu_embedding.runner.progress import RunReport
from estimator_tpu_embedding.runner.sessions import Losses

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


def sessions(*problems, losses=1):
    """Begins a run, and a session after each of some losses of a host at the same step."""
    cluster = FakeCluster(*problems)
    counted = Losses(cluster, RunReport('train', 4, steps=7), lambda: None)
    counted.begin_session()
    for _ in range(losses):
        cluster.lost(HostLostError(KILLED, hosts=(1,)))
        counted.begin_session()
    return cluster


def test_h01_a_worker_that_is_killed_while_it_starts_again_is_started_once_more():
    assert sessions(None, ENDED, None).problems == []


@pytest.mark.parametrize('problems, losses', [
    ((None, ENDED, ENDED), 1), ((None, ENDED, None), 2), ((None, None, None), 3)])
def test_h01_the_third_loss_at_one_step_ends_the_run_whether_at_a_start_or_in_a_session(
        problems, losses):
    with pytest.raises(SessionLostError, match='E722 train: .*; got number 3 after step 7: '):
        sessions(*problems, losses=losses)


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
