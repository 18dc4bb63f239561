"""The garbage collector while a graph is built."""

import gc

import pytest

from estimator_tpu_embedding.runner.graph import ALLOCATIONS, collected_rarely


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize('before, during', [
    ((700, 10, 10), ALLOCATIONS), ((0, 10, 10), (0, 10, 10)),
    ((200_000, 5, 5), (200_000, 5, 5))])
def test_the_thresholds_are_higher_and_come_back_also_after_an_error(before, during):
    gc.set_threshold(*before)
    with pytest.raises(ZeroDivisionError), collected_rarely():
        assert gc.get_threshold() == during
        raise ZeroDivisionError
    assert gc.get_threshold() == before
