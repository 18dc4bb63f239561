"""The waits of one end share their deadline."""

import threading
import time

import pytest

from estimator_tpu_embedding.runner.shutdown import Shutdown


@pytest.fixture
def endless():
    """Threads that do not end before the test does."""
    over = threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    yield threads
    over.set()
    for thread in threads:
        thread.join()


def test_all_waits_together_take_no_longer_than_one_may(endless):
    shutdown, began = Shutdown(3.), time.monotonic()
    assert [shutdown.wait_for(thread, 'it') for thread in endless] == [False] * 4
    assert 3 <= time.monotonic() - began < 12  # One after another they would take 12.


def test_the_next_end_has_a_deadline_of_its_own(endless):
    shutdown = Shutdown(.5)
    assert not shutdown.wait_for(endless[0], 'it')
    shutdown.restart()
    began = time.monotonic()
    assert not shutdown.wait_for(endless[0], 'it') and time.monotonic() - began >= .5


def test_what_has_ended_is_not_waited_for_even_after_the_deadline():
    shutdown, thread = Shutdown(0.), threading.Thread(target=lambda: None)
    thread.start()
    assert shutdown.wait_for(thread, 'it')


def test_what_gets_urgent_ends_the_waits(endless):
    is_urgent = threading.Event()
    shutdown = Shutdown(600., is_urgent.is_set)
    timer = threading.Timer(.5, is_urgent.set)
    timer.start()
    assert not any(shutdown.wait_for(thread, 'it') for thread in endless)
    timer.join()


def test_an_interrupt_ends_all_waits(endless):
    def interrupt():
        raise KeyboardInterrupt

    shutdown = Shutdown(600., interrupt)
    with pytest.raises(KeyboardInterrupt):
        shutdown.wait_for(endless[0], 'it')
    shutdown._is_urgent = lambda: False
    assert not any(shutdown.wait_for(thread, 'it') for thread in endless)
