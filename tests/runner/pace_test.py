import pytest

from estimator_tpu_embedding.runner.pace import WINDOW, FixedPace, TimedPace

pytestmark = pytest.mark.section('9.3')


def test_a_fixed_pace_stays():
    pace = FixedPace(7)
    pace.add(100., 7)
    assert pace.steps() == 7


def test_a_timed_pace_begins_with_one_step_and_follows_the_mean_time_of_a_step():
    pace = TimedPace(10.)
    assert pace.steps() == 1
    pace.add(2., 1)
    assert pace.steps() == 5
    pace.add(5., 5)  # 1 second each; the mean of 2 and 1 is 1.5, and 10 / 1.5 rounds to 7
    assert pace.steps() == 7


def test_half_a_step_is_rounded_up_and_one_step_is_the_least():
    pace = TimedPace(5.)
    pace.add(2., 1)
    assert pace.steps() == 3
    pace.add(1000., 1)
    assert pace.steps() == 1


def test_runs_that_took_no_time_or_made_no_step_say_nothing():
    pace = TimedPace(10.)
    pace.add(0., 3)
    pace.add(3., 0)
    assert pace.steps() == 1


def test_only_the_last_runs_count():
    pace = TimedPace(10.)
    pace.add(1000., 1)
    for _ in range(WINDOW):
        pace.add(1., 1)
    assert pace.steps() == 10


@pytest.mark.parametrize('others, last, wobble, expected', [
    (5, 9, 0, 5), (5, 8, 0, 10),  # The last run is within 10 % of 10 seconds, or not.
    (10, 8, 0, 5),  # Else the mean of all may be within 5 %.
    (5, 9, .1, 10)])  # Steps that take 0.9 and 1.1 seconds in turn are not steady.
def test_a_steady_pace_near_its_aim_is_left_as_it_is(others, last, wobble, expected):
    pace = TimedPace(10.)
    pace.add(2., 1)
    assert pace.steps() == 5
    for number in range(WINDOW):  # 1 second per step, more or less.
        pace.add(others * (1 + wobble * (-1) ** number), others)
    pace.add(float(last), last)
    assert pace.steps() == expected


def test_time_must_be_positive():
    with pytest.raises(ValueError, match='Invalid `total_secs`. It must be positive number. '
                                         'Actual:0'):
        TimedPace(0)
