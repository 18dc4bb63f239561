import dataclasses
from unittest import mock

import numpy as np
import pytest
from harness.profiles import profile_of, subject
from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.core import table_profile
from estimator_tpu_embedding.core.partition import STRATEGIES, Partition
from estimator_tpu_embedding.core.table_profile import TableProfile, Tally


@pytest.mark.parametrize('strategy, hosts, load', [
    ('div', 2, [5, 3]), ('mod', 2, [4, 4]),  # as counted
    ('div', 4, [3, 2, 2, 1]), ('mod', 4, [4, 1, 0, 3]),  # 0 to 2, 3 to 5, 6 to 7, 8 to 9
    ('div', 16, [3, 0, 0, 1, 1, 0, 0, 2, 0, 1, *[0] * 6])])
def test_the_load_of_a_small_table_is_exact_for_any_number_of_hosts(strategy, hosts, load):
    found = profile_of(subject(10), [[0, 0, 0, 3, 4], [7, 7, 9]])
    assert found.load(strategy, hosts) == (load, 0)


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


ABOUT = subject(5, batch_size=4, cores=1, features=(('a', 0), ('path', 3)))
STEPS = st.lists(st.lists(st.integers(0, 19), max_size=30), max_size=12)


def core(samples, ids):
    return np.array(samples, np.int32), np.array(ids, np.int64)


def test_the_counts_of_a_step_of_two_cores_by_hand():
    counted = Tally(TableProfile.empty(ABOUT))
    # Two samples per core. Places 0 to 2 of the sequence are of sample 0, 3 to 5 of sample 1.
    counted.add({'a': [core([0, 0, 1], [4, 4, 0]), core([], [])],
                 'path': [core([0, 2], [4, 1]), core([3, 4, 5], [1, 2, 2])]})
    found = counted.profile(first_step=7, last_step=8, steps=1)
    assert (found.first_step, found.last_step, found.steps, found.sampled_steps) == (7, 8, 1, 1)
    assert found.features == (3, 5)
    assert found.ranges == found.remainders == (1, 2, 2, 0, 3)
    # div: ids 0 to 2 and 3 to 4; mod: 0, 2, 4 and 1, 3.
    assert found.loads == {'div': (5, 3), 'mod': (6, 2)}
    assert found.is_possible() and (found.ids, found.examples) == (8, 4)


@given(STEPS, STEPS)
def test_counts_that_go_on_are_those_of_all_steps(first, second):
    found = profile_of(subject(20), second, profile_of(subject(20), first))
    whole = profile_of(subject(20), first + second)
    assert found.is_possible()
    for name in ('sampled_steps', 'features', 'ranges', 'remainders', 'loads', 'steps'):
        assert getattr(found, name) == getattr(whole, name)
