import dataclasses
from unittest import mock

import numpy as np
import pytest
from harness.profiles import profile_of, subject
from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.core import table_profile
from estimator_tpu_embedding.core.partition import STRATEGIES, Partition


@pytest.mark.parametrize('strategy, hosts, load', [
    ('div', 2, [5, 3]), ('mod', 2, [4, 4]),  # as counted
    ('div', 4, [3, 2, 2, 1]), ('mod', 4, [4, 1, 0, 3]),  # 0 to 2, 3 to 5, 6 to 7, 8 to 9
    ('div', 16, [3, 0, 0, 1, 1, 0, 0, 2, 0, 1, *[0] * 6])])
def test_the_load_of_a_small_table_is_exact_for_any_number_of_hosts(strategy, hosts, load):
    found = profile_of(subject(10), [[0, 0, 0, 3, 4], [7, 7, 9]])
    assert found.load(strategy, hosts) == (load, 0)


def test_what_is_known_by_range_only_is_spread_evenly_and_said_to_be_uncertain(monkeypatch):
    monkeypatch.setattr(table_profile, 'MAX_RANGES', 2)
    found = profile_of(subject(12), [[3, 0, 1, 8]])
    assert found.ranges == (3, 1)  # Rows 0 to 5 and 6 to 11.
    # Of rows 0 to 3, 4 to 7 and 8 to 11 the middle ones lie in both ranges.
    assert found.load('div', 3) == ([2, pytest.approx(1 + 1 / 3), pytest.approx(2 / 3)], 4)
    assert found.load('mod', 3) == ([2, 1, 1], 0)


@given(st.lists(st.integers(0, 5_000), max_size=60), st.sampled_from(STRATEGIES),
       st.integers(1, 40), st.sampled_from([5_001, 60_000, 2**31 - 1]))
def test_no_host_is_further_off_than_the_uncertain_ids(ids, strategy, hosts, rows):
    with mock.patch.object(table_profile, 'MAX_RANGES', 7):
        found = profile_of(subject(rows), [ids])
        load, uncertain = found.load(strategy, hosts)
    partition = Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)
    true = np.bincount(partition.locate(np.array(ids, np.int64), np.maximum)[0], minlength=hosts)
    assert np.all(np.abs(true - load) <= uncertain + 1e-6)
    assert sum(load) == pytest.approx(len(ids))
    if strategy == 'mod' and 3840 % hosts == 0:
        assert uncertain == 0


@pytest.mark.parametrize('change', [
    {'ranges': (8,)}, {'ranges': (9, *[0] * 9)}, {'remainders': (0,) * 10},
    {'features': ()}, {'loads': {}},
    *({'subject': subject()._replace(**one)} for one in (
        {'vocabulary_size': 0}, {'dimension': 0}, {'batch_size': 0}, {'hosts': 2**40}))])
def test_what_no_counting_gives_is_not_possible(change):
    found = profile_of(subject(), [[0, 0, 0, 3, 4], [7, 7, 9]])
    assert found.is_possible() and not dataclasses.replace(found, **change).is_possible()
