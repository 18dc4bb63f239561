"""Gathered checks fail as they do one by one, and make no operations for messages otherwise."""

import numpy as np
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
    message = tf.cond(conditions.holds(), lambda: tf.constant(''),
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


def holds_of(limits, conditions=()):
    """What `holds` gives for numbers and bounds, and conditions, and the operations it made."""
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        with checks.gathered() as found:
            for condition in conditions:
                checks.require(tf.constant(condition, tf.bool), SMALL, got='nothing')
            for numbers, bound in limits:
                numbers = numbers() if callable(numbers) else tf.constant(numbers, tf.int64)
                assert checks.limited(numbers, bound, SMALL, got=pytest.fail) is numbers
        holds = found.holds()
        return session.run(holds) if holds is not None else None, [
            operation.type for operation in graph.get_operations()]


def unknown(numbers):
    return lambda: tf.compat.v1.placeholder_with_default(
        np.array(numbers, np.int64), [None] * np.ndim(numbers))


def of_unknown_rank(numbers):
    return lambda: tf.compat.v1.placeholder_with_default(np.array(numbers, np.int64), None)


def test_where_nothing_was_gathered_there_is_no_condition_and_no_operation():
    assert holds_of([]) == (None, [])
    with tf.Graph().as_default() as graph:
        with checks.gathered() as found:
            pass
        assert checks.require_gathered(found, lambda: pytest.fail('explained')) is None
        assert not graph.get_operations()


@pytest.mark.parametrize('shaped', [np.array, unknown, of_unknown_rank])
@pytest.mark.parametrize('limits, expected', [
    ([([0, 4], 5)], True), ([([0, 5], 5)], False), ([([-1, 4], 5)], False), ([(4, 5)], True),
    ([(5, 5)], False), ([([], 1)], True), ([([], 1), ([], 9)], True), ([([], 1), ([9], 9)], False),
    # Each has a bound of its own, in the order of the numbers.
    ([([4, 4], 5), ([8, 8], 9)], True), ([([8, 4], 5), ([4, 8], 9)], False),
    ([([4, 4], 5), ([8, 9], 9)], False), ([(4, 5), (8, 9)], True), ([(5, 5), (5, 9)], False),
    ([([[4], [4]], 5), ([[8], [8]], 9)], True), ([([[4], [8]], 5), ([[8], [8]], 9)], False),
    ([([4, 4], 5), ([8], 9), ([[0]], 1), (0, 1)], True),
    ([([4, 4], 5), ([8], 9), ([[0]], 1), (1, 1)], False),
    ([([2**63 - 1], 2**63 - 1)], False), ([([2**63 - 2], 2**63 - 1)], True),
    ([([-2**63], 2**63 - 1)], False)])
def test_numbers_of_any_shapes_have_bounds_of_their_own(limits, expected, shaped):
    assert holds_of([(shaped(numbers), bound) for numbers, bound in limits])[0] == expected
    assert not holds_of([(shaped(numbers), bound) for numbers, bound in limits], [False])[0]
