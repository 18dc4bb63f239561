"""Gathered checks fail as they do one by one, and make no operations for messages otherwise."""

import pytest
import tensorflow as tf

from estimator_tpu_embedding.errors import Problem
from estimator_tpu_embedding.ops import checks

SMALL = Problem('E501', 'feature a', 'numbers must be small', remedy='Divide.')
EVEN = Problem('E501', 'feature b', 'numbers must be even', remedy='Double.')


def require_both(numbers):
    """Two checks; the first fails for numbers of 10 or more, the second for odd ones."""
    return [
        checks.require(numbers < 10, SMALL, got=lambda: checks.first_values(
            checks.masked(numbers, numbers >= 10))),
        checks.require(tf.equal(tf.reduce_sum(numbers % 2), 0), EVEN, got='an odd one')]


@tf.function
def gathered(numbers):
    with checks.gathered() as conditions:
        require_both(numbers)
    message = tf.cond(checks.all_hold(conditions), lambda: tf.constant(''),
                      lambda: checks.first_message(lambda: require_both(numbers)))
    with tf.control_dependencies([checks.require_silence(message)]):
        return tf.reduce_sum(numbers)


def test_gathered_checks_fail_with_the_message_of_the_check():
    assert gathered(tf.constant([2, 4])).numpy() == 6
    assert gathered(tf.constant([], tf.int32)).numpy() == 0
    for numbers, message in (
            ([12, 4, 20], 'E501 feature a: numbers must be small; got 12, 20. Divide.'),
            ([2, 3], 'E501 feature b: numbers must be even; got an odd one. Double.')):
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                gathered(tf.constant(numbers))
            assert message in ' '.join(caught.value.message.split())
    assert gathered(tf.constant([8])).numpy() == 8


def test_where_nothing_was_gathered_there_is_no_condition_and_no_operation():
    with tf.Graph().as_default() as graph:
        with checks.gathered() as found:
            pass
        assert checks.require_gathered(found, lambda: pytest.fail('explained')) is None
        assert not graph.get_operations()


@pytest.mark.parametrize('number, is_below', [
    (0, True), (4, True), (5, False), (-1, False), (2**63 - 1, False), (-2**63, False)])
def test_a_number_is_below_a_bound_from_0_on(number, is_below):
    assert bool(checks.are_below(tf.constant([number], tf.int64), 5)) == is_below
