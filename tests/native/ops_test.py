"""The native operations answer any illegal input with an error of TensorFlow."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import native_ops
from harness.native_ops import PARTS, SAMPLES, Operations

from estimator_tpu_embedding.core.specs import MAX_THREADS
from estimator_tpu_embedding.native import library

pytestmark = pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())
WRONG = tf.errors.InvalidArgumentError
IDS = ([[0, 0, 3], [1], []], [[4, 0, 2], [6], []], [[1., 2., .5]])


@pytest.fixture
def operations():
    with tf.Graph().as_default():
        made = Operations()
        yield made
        made.session.close()


@pytest.mark.parametrize('weighted, says', [
    ([0, 0], 'weighted.*3 entries, got 2'), ([0, -1, 0], '"friend".*0 or 1, got -1'),
    ([1, 1, 0], 'weighted features: the engine expects 2, not 1')])
def test_features_that_cannot_be_those_with_weights_are_refused(operations, weighted, says):
    with pytest.raises(WRONG, match=says):
        operations.group(*IDS, weighted=weighted)


@pytest.mark.parametrize('features, weighted, says', [
    (2, 3, 'F,.*expects 3, not 2'), (3, 0, 'W,.*expects 1, not 0')])
def test_outputs_that_are_not_those_of_the_engine_are_refused(
        operations, features, weighted, says):
    """With two and three there are as many as with three and one, but of other types."""
    ungrouped = operations.library.ete_ungroup(
        engine=operations.handle, grouped=operations.group(*IDS), F=features, W=weighted)
    with pytest.raises(WRONG, match=says):
        operations.run(ungrouped)


@pytest.mark.parametrize('handle', [0, -1, 2**62, [1, 2], []])
def test_a_handle_of_no_engine_is_refused(operations, handle):
    with pytest.raises(WRONG, match='engine'):
        operations.group(*IDS, handle=np.array(handle, np.int64))


@pytest.mark.parametrize('samples, ids, weights, says', [
    ([[0, 0, 3], [1], [2]], IDS[1], IDS[2], '"self"'),
    ([[0, 0], [1], []], IDS[1], IDS[2], '"liked"'),
    (IDS[0], IDS[1], [[1.]], '"liked"'),
    (IDS[0], [[4, 0, 5], [6], []], IDS[2], '"liked".*5'),
    (IDS[0], [[4, 0, 2], [-1], []], IDS[2], '"friend".*-1'),
    ([[0, 3, 0], [1], []], IDS[1], IDS[2], '"liked"'),
    ([[0, 0, 3], [SAMPLES], []], IDS[1], IDS[2], '"friend"'),
    (IDS[0], IDS[1], [], 'weighted features: the engine expects 1, not 0'),
    (IDS[0][:2], IDS[1][:2], IDS[2] * 3, 'number of features: the engine expects 3, not 2')])
def test_ids_that_do_not_fit_are_refused_with_the_name_of_the_feature(
        operations, samples, ids, weights, says):
    with pytest.raises(WRONG, match=says):
        operations.group(samples, ids, weights)


@pytest.mark.parametrize('grouped, features, says', [
    (np.int32(3), 3, 'vector'), (np.zeros([2, 8], np.int32), 3, 'vector'),
    (np.zeros([0], np.int32), 3, 'grouped'), (np.zeros([40], np.int32), 3, 'grouped'),
    (None, 2, 'expects 3, not 2'), (None, 4, 'expects 3, not 4')])
def test_what_is_no_grouped_batch_is_refused(operations, grouped, features, says):
    with pytest.raises(WRONG, match=says):
        operations.lookup(operations.group(*IDS) if grouped is None else grouped, features)


def test_a_batch_of_another_engine_is_refused(operations):
    other = Operations(table_rows=[5, 8])
    for weights, weighted in ((IDS[2], []), ([], [0, 0, 0])):
        grouped = other.group(*IDS[:2], weights, weighted=weighted)
        with pytest.raises(WRONG, match='grouped'):
            operations.lookup(grouped)
    other.session.close()


@pytest.mark.parametrize('change, says', [
    (lambda gradients: gradients[:2] + [np.zeros([3, 8], np.float32)], '"self".*4 rows of 8'),
    (lambda gradients: gradients[:2], 'expects 5, not 4'),
    (lambda gradients: gradients + gradients[:1], 'expects 5, not 6')])
def test_gradients_that_do_not_fit_are_refused(operations, change, says):
    with pytest.raises(WRONG, match=says):
        operations.update([operations.group(*IDS)], change(native_ops.zeros()))


@pytest.mark.parametrize('rates', [[.1], [], [.1, .2, .3]])
def test_rates_are_one_per_table(operations, rates):
    with pytest.raises(WRONG, match='one per table'):
        operations.update([operations.group(*IDS)], native_ops.zeros(), rates)


@pytest.mark.parametrize('part, shape', [(0, [3, 4]), (0, [9]), (0, []), (8, [3, 3])])
def test_a_value_that_is_not_of_its_part_is_refused(operations, part, shape):
    value, given = tf.zeros(shape), operations.library
    for refused in (
            given.ete_view(engine=operations.handle, value=value, part=part),
            given.ete_take(engine=operations.handle, value=value, part=part),
            given.ete_read_rows(engine=operations.handle, value=value, rows=[0], part=part)):
        with pytest.raises(WRONG, match='part'):
            operations.run(refused)


@pytest.mark.parametrize('rows', [[3], [-1], [[0], [2**40]]])
def test_rows_beyond_a_part_are_refused(operations, rows):
    with pytest.raises(WRONG, match='row'):
        operations.run(operations.library.ete_read_rows(
            engine=operations.handle, value=tf.zeros([3, 3]), rows=rows, part=0))


def test_rows_are_read_from_the_value_that_is_given_for_any_shape_of_indices(operations):
    value = np.arange(9, dtype=np.float32).reshape(3, 3)
    for rows in (1, [2, 0], [[0, 1], [2, 2]], np.zeros([2, 0], np.int64)):
        found = operations.run(operations.library.ete_read_rows(
            engine=operations.handle, value=value, rows=tf.constant(rows, tf.int64), part=0))
        np.testing.assert_array_equal(found, value[np.array(rows, np.int64)])


def test_all_parts_are_compared_and_none_may_be_missing(operations):
    values = [tf.zeros(shape) for shape in PARTS]
    given = operations.library
    assert operations.run(given.ete_detached(engine=operations.handle, values=values)) == 0
    for wrong in (values[:-1], values + values[:1], values[::-1]):
        with pytest.raises(WRONG, match='part'):
            operations.run(given.ete_detached(engine=operations.handle, values=wrong))


@pytest.mark.parametrize('changes, says', [
    ({'threads': -1}, 'threads'), ({'threads': MAX_THREADS + 1}, f'to {MAX_THREADS},'),
    ({'threads': 2**40}, 'threads'), ({'patience_ms': -1}, 'patience_ms'),
    ({'patience_ms': 2**40}, 'patience_ms'), ({'table_widths': [3]}, 'table'),
    ({'table_rows': [0, 7]}, '"item"'), ({'num_hosts': 0}, 'host'), ({'strategy': 2}, 'strategy'),
    ({'feature_tables': [0, 1, 2]}, '"self"'), ({'feature_samples': [4, 4, -4]}, '"self"'),
    ({'table_combiners': [7, 0]}, '"item"'), ({'table_options': []}, 'table'),
    ({'table_ids': [0]}, 'table_ids.*4 entries'), ({'table_ids': [0, 1, 0, 0]}, '"user".*stride'),
    ({'table_ids': [-1, 1, 0, 1]}, '"item".*first id')])
def test_an_engine_of_numbers_that_contradict_each_other_is_refused(changes, says):
    with tf.Graph().as_default(), pytest.raises(WRONG, match=says):
        Operations(**changes)


def test_a_table_that_no_memory_can_hold_is_an_error_that_names_it():
    with tf.Graph().as_default(), pytest.raises(tf.errors.ResourceExhaustedError, match='"user"'):
        Operations(table_rows=[5, 2**31], table_widths=[3, 2**19])


def test_results_that_share_memory_are_their_own_while_others_are_made():
    samples = 30000  # 360 kB of "liked" and 960 kB of each other feature; a piece has 2 MiB.
    with tf.Graph().as_default():
        own = Operations(feature_samples=[samples] * 3)
        for part, row in ((0, 1.), (4, 2.)):  # Host 0 has the ids 0, 2, 4 and, of users, 6.
            shape = PARTS[part]
            value = tf.constant(row + np.arange(shape[0])[:, None] * np.ones(shape), tf.float32)
            own.run(own.library.ete_view(engine=own.handle, value=value, part=part))
            own.run(own.library.ete_take(engine=own.handle, value=value, part=part))
        every, ones = np.arange(samples), np.ones(samples)
        found = [own.lookup(own.group([every] * 3, ids * ones.astype(int), [ones]))
                 for ids in (np.array([[0], [2], [4]]), np.array([[4], [6], [0]]))]
        own.session.close()
    for activations, rows in zip(found, ((1, 3, 4), (3, 5, 2))):
        for activation, row, width in zip(activations, rows, (3, 8, 8)):
            np.testing.assert_array_equal(activation, np.full([samples, width], row))


def test_a_grouped_batch_of_garbage_is_an_error_or_some_result(operations):
    """Most words are those of a valid batch, so that the first checks are passed."""
    generator = np.random.default_rng(8)
    fed = tf.placeholder(tf.int32, [None])
    gradients = [np.ones_like(zeros) for zeros in native_ops.zeros()]
    call = operations.session.make_callable(
        [operations.library.ete_lookup(
            engine=operations.handle, grouped=fed, handles=[], F=3),
         operations.library.ete_update(engine=operations.handle, grouped=[fed],
                                       gradients=gradients, rates=[.1, .1], handles=[]),
         operations.library.ete_ungroup(engine=operations.handle, grouped=fed, F=3, W=1)], [fed])
    valid = [*[operations.some_grouped(seed) for seed in range(4)],
             operations.group(*IDS[:2], [[3.]], weighted=[0, 1, 0])]
    refused = 0
    for number in range(300):
        words = valid[number % len(valid)].copy()
        places = generator.integers(0, len(words), generator.integers(1, 4))
        words[places] = generator.choice([
            0, 1, -1, 7, 64, 2**31 - 1, -2**31, *generator.integers(-2**31, 2**31, 3)], len(places))
        if number % 4 == 0:
            words = words[:generator.integers(0, len(words))]
        try:
            call(words)
        except tf.errors.InvalidArgumentError:
            refused += 1
    assert 100 < refused < 300
    assert operations.update([operations.some_grouped()], native_ops.zeros()).tolist() == [0, 0]
