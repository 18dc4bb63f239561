import pytest

from estimator_tpu_embedding.checkpoint.retention import (
    KeepEveryHours,
    KeepEverySteps,
    Retention,
    Saved,
)


def after_all(retention, saved):
    """The steps that are left, and those kept forever, if each is committed in turn."""
    managed, deleted = [], []
    for one in saved:
        managed, released = retention.split([*managed, one])
        deleted += [each.step for each in released]
    return [one.step for one in managed], [
        one.step for one in saved if one.step not in deleted and one not in managed]


@pytest.mark.parametrize('newest, others, left, forever', [
    (0, [], [1, 2, 3, 4, 5, 6], []), (1, [], [6], []), (2, [], [5, 6], []),
    (2, [KeepEverySteps(2)], [5, 6], [2, 4]), (9, [KeepEverySteps(2)], [1, 2, 3, 4, 5, 6], []),
    # One is saved each half an hour: 2 and 4 are the first after 0.9 and 1.8 hours.
    (1, [KeepEveryHours(.9, 0.)], [6], [2, 4]), (1, [KeepEveryHours(.9, 1e6)], [6], []),
    (1, [KeepEveryHours(.9, 0.), KeepEverySteps(3)], [6], [2, 3, 4])])
def test_what_is_left_of_six(newest, others, left, forever):
    saved = [Saved(step, at=step * 1800.) for step in range(1, 7)]
    assert after_all(Retention(newest, others), saved) == (left, forever)


def test_one_in_two_hours_is_kept_of_those_saved_each_50_minutes():
    """As by `tf.train.Saver`: 150, 250 and 400 minutes are the first after 120, 240 and 360."""
    saved = [Saved(step, at=step * 3000.) for step in range(1, 12)]
    assert after_all(Retention(3, [KeepEveryHours(2, 0.)]), saved) == ([9, 10, 11], [3, 5, 8])
