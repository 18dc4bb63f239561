"""The account of batches between the infeed threads and the steps, in one thread."""

import types

import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.hosts.backend import QUEUE_CAPACITY
from estimator_tpu_embedding.runner.faults import Failures
from estimator_tpu_embedding.runner.feed_progress import FeedProgress
from estimator_tpu_embedding.runner.progress import RunReport


@pytest.fixture
def report():
    return RunReport('train', 4)


@pytest.fixture
def progress(report):
    """Of two hosts, whose threads are never asked: every batch is there or has ended."""
    return FeedProgress([types.SimpleNamespace(name=f'host {number}') for number in range(2)],
                        Failures(), report)


def wanted(progress, host):
    """How many batches a host makes until no more are wanted."""
    made = 0
    while host.produced < progress._allowed:
        assert progress.await_demand(host)
        progress.add_batch(host, has_data=True)
        made += 1
    return made


@pytest.mark.parametrize('following, ahead', [(0, 0), (1, 1), (100, QUEUE_CAPACITY)])
def test_a_host_makes_the_batches_of_the_steps_asked_for_and_those_that_queues_hold(
        progress, report, following, ahead):
    progress.request(3, following)
    assert wanted(progress, progress.hosts[0]) == 3 + ahead
    report.steps += 3
    progress.request(2, 0)
    assert wanted(progress, progress.hosts[0]) == 2 - min(ahead, 2)


def test_a_step_begins_when_every_host_has_its_batch_and_one_has_data(progress, report):
    for host, has_data in zip(progress.hosts, (False, True)):
        progress.add_batch(host, has_data)
    progress.await_batch(lambda: False)
    report.steps += 1
    for host in progress.hosts:
        progress.add_batch(host, has_data=False)
    with pytest.raises(tf.errors.OutOfRangeError, match='end of input'):
        progress.await_batch(lambda: False)
    assert progress.ended_input == 'host 0'  # It had the fewer batches with data.


def test_threads_are_told_once_that_the_run_is_over(progress):
    progress.request(1, 0)
    assert progress.stop() and not progress.stop()
    assert not progress.await_demand(progress.hosts[0])
