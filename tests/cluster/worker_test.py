"""A worker is one run's at a time, as long as its client says so."""

import pytest
from harness import groups

from estimator_tpu_embedding.cluster import process_facts
from estimator_tpu_embedding.cluster.worker import Lease


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lease(clock):
    return Lease(60, clock)


def test_h16_only_one_run_has_a_worker(lease):
    assert lease.claim('run-1', 'alice') and lease.claim('run-1', 'alice')
    assert not lease.claim('run-2', 'bob') and not lease.renew('run-2')
    assert not lease.release('run-2') and not lease.is_over()
    assert lease.as_data() == {
        'run': 'run-1', 'client': 'alice', 'silent_seconds': 0.0, 'seconds_left': 60.0}


def test_h05_a_worker_is_free_at_once_when_its_client_is_known_to_have_ended(lease):
    with groups.running(['sleep', '100']) as client:
        begun = process_facts._begun(client.pid)
        assert lease.claim('run-1', 'alice', lambda: process_facts.has_ended(
            {**process_facts.process(), 'pid': client.pid, 'begun': begun}))
        assert not lease.is_over() and not lease.claim('run-2', 'bob')
    assert lease.is_over() and not lease.renew('run-1')


def test_h05_a_claim_lasts_while_it_is_renewed_and_ends_when_its_client_is_silent(lease, clock):
    assert lease.claim('run-1', 'alice') and not lease.is_over()
    for _ in range(3):
        clock.now += 59
        assert lease.renew('run-1') and not lease.is_over()
    clock.now += 60
    assert lease.is_over() and lease.as_data()['seconds_left'] == 0
    assert not lease.renew('run-1') and not lease.claim('run-1', 'alice')


def test_an_own_worker_has_its_client_for_ever(clock):
    lease = Lease(float('inf'), clock)
    assert lease.claim('run-1', 'alice')
    clock.now += 1e9
    assert not lease.is_over() and lease.as_data()['seconds_left'] is None
