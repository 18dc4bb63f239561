import collections
from unittest import mock

import numpy as np
from harness.profiles import profile_of, subject
from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.core import table_profile, tally
from estimator_tpu_embedding.core.table_profile import FeatureUse, HostLoad, TableProfile

ABOUT = subject(5, batch_size=4, cores=1, features=(('a', 0), ('path', 3)))
STEPS = st.lists(st.lists(st.integers(0, 19), max_size=30), max_size=12)


def core(samples, ids):
    return np.array(samples, np.int32), np.array(ids, np.int64)


def few_heavy(count):
    """At most `count` ids are known one by one, so small numbers reach the bounds."""
    return mock.patch.multiple(table_profile, HEAVY=count), mock.patch.multiple(tally, HEAVY=count)


def test_the_counts_of_a_step_of_two_cores_by_hand():
    counted = tally.Tally(TableProfile.empty(ABOUT))
    # Two samples per core. Places 0 to 2 of the sequence are of sample 0, 3 to 5 of sample 1.
    counted.add({'a': [core([0, 0, 1], [4, 4, 0]), core([], [])],
                 'path': [core([0, 2], [4, 1]), core([3, 4, 5], [1, 2, 2])]})
    found = counted.profile(first_step=7, last_step=8, steps=1)
    assert (found.first_step, found.last_step, found.steps, found.sampled_steps) == (7, 8, 1, 1)
    # a: 2, 1, 0 and 0 ids; path: 2, 0, 0 and 3.
    assert found.features == (FeatureUse(3, 2, (2, 1, 1, *[0] * 30)),
                              FeatureUse(5, 3, (2, 0, 2, *[0] * 30)))
    assert found.heavy == {0: 1, 1: 2, 2: 2, 4: 3} and found.undercount == 0
    assert found.unique_ids == 4
    assert found.ranges == found.remainders == (1, 2, 2, 0, 3)
    # div: ids 0 to 2 and 3 to 4; mod: 0, 2, 4 and 1, 3.
    assert found.loads == {'div': HostLoad((5, 3), (3, 1)), 'mod': HostLoad((6, 2), (3, 1))}
    assert found.is_possible() and (found.ids, found.examples) == (8, 4)


def check_heavy(found, steps, most):
    """What is promised of `heavy`, whatever was counted."""
    true = collections.Counter(id for ids in steps for id in ids)
    assert len(found.heavy) <= most
    for id in range(20):
        assert true[id] - found.undercount <= found.heavy.get(id, 0) <= true[id]
    assert found.undercount * (most + 1) <= found.ids == true.total()
    assert found.is_possible()


@given(STEPS, st.integers(1, 6))
def test_heavy_ids_are_never_too_high_and_too_low_by_no_more_than_stated(steps, most):
    here, there = few_heavy(most)
    with here, there:
        check_heavy(profile_of(subject(20), steps), steps, most)


@given(STEPS, STEPS, st.integers(1, 6))
def test_counts_that_go_on_are_those_of_all_steps_and_their_bounds_hold(first, second, most):
    here, there = few_heavy(most)
    with here, there:
        found = profile_of(subject(20), second, profile_of(subject(20), first))
        check_heavy(found, first + second, most)
    whole = profile_of(subject(20), first + second)
    for name in ('sampled_steps', 'features', 'unique_ids', 'ranges', 'remainders', 'loads',
                 'steps'):
        assert getattr(found, name) == getattr(whole, name)
