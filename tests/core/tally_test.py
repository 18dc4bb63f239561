import numpy as np
from harness.profiles import profile_of, subject
from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.core.table_profile import TableProfile, Tally

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
