"""The garbage collector while a graph is built."""

import gc
import weakref

import pytest

from estimator_tpu_embedding.runner.garbage import ALLOCATIONS, collected_rarely


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


class Cycle:
    def __init__(self):
        self.itself = self


@pytest.mark.parametrize('before, during', [
    ((700, 10, 10), ALLOCATIONS), ((0, 10, 10), (0, 10, 10)),
    ((200_000, 5, 5), (200_000, 5, 5))])
def test_the_thresholds_are_higher_and_come_back_also_after_an_error(before, during):
    gc.set_threshold(*before)
    with pytest.raises(ZeroDivisionError), collected_rarely():
        assert gc.get_threshold() == during
        raise ZeroDivisionError
    assert gc.get_threshold() == before


def test_two_that_overlap_put_back_what_was_before_both():
    first, second = collected_rarely(), collected_rarely()
    gc.set_threshold(700, 10, 10)
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() == ALLOCATIONS
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


def test_what_nobody_holds_is_still_collected():
    gc.set_threshold(700, 10, 10)
    with collected_rarely():
        lost = weakref.ref(Cycle())
        kept = [[] for _ in range(2 * ALLOCATIONS[0])]
        assert lost() is None
    assert len(kept) == 2 * ALLOCATIONS[0]
