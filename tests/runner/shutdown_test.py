"""The waits of one end share their deadline."""

import pytest

from estimator_tpu_embedding.runner import shutdown
from estimator_tpu_embedding.runner.shutdown import PROMPT_SECONDS, Shutdown

SLICE = shutdown._SLICE_SECONDS


class Thread:
    """Does not end; who waits for it sees the clock move."""

    now = 0.
    has_ended = False

    def monotonic(self):
        return self.now

    def is_alive(self):
        return not self.has_ended

    def join(self, seconds):
        self.now += seconds * self.is_alive()


@pytest.fixture
def thread(monkeypatch):
    one = Thread()
    monkeypatch.setattr(shutdown, 'time', one)
    return one


def test_all_waits_together_take_no_longer_than_one_may(thread):
    shutdown = Shutdown(3.)
    assert [shutdown.wait_for(thread, 'it') for _ in range(4)] == [False] * 4
    assert thread.now == pytest.approx(3 + 4 * SLICE)  # Each looks whether it ends at once.


def test_the_next_end_has_a_deadline_of_its_own(thread):
    shutdown = Shutdown(.5)
    assert not shutdown.wait_for(thread, 'it')
    shutdown.restart()
    assert not shutdown.wait_for(thread, 'it')
    assert thread.now == pytest.approx(2 * (.5 + SLICE))


def test_what_has_ended_is_not_waited_for_even_after_the_deadline(thread):
    thread.has_ended = True
    assert Shutdown(0.).wait_for(thread, 'it') and thread.now == 0


def test_what_gets_urgent_ends_the_waits(thread):
    shutdown = Shutdown(600., lambda: thread.now >= 5)
    assert not any(shutdown.wait_for(thread, 'it') for _ in range(4))
    assert 5 + PROMPT_SECONDS <= thread.now <= 5 + PROMPT_SECONDS + 5 * SLICE


def test_an_interrupt_ends_all_waits(thread):
    def interrupt():
        raise KeyboardInterrupt

    shutdown = Shutdown(600., interrupt)
    with pytest.raises(KeyboardInterrupt):
        shutdown.wait_for(thread, 'it')
    shutdown._is_urgent = lambda: False
    assert not any(shutdown.wait_for(thread, 'it') for _ in range(4))
    assert thread.now == pytest.approx(5 * SLICE)
