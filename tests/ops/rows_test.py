import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.ops import rows


def test_duplicates_are_summed_in_order_of_first_occurrence():
    with tf.Graph().as_default(), tf.Session() as session:
        ids, sums = session.run(rows.sum_duplicates(
            tf.constant([7, 2, 7], tf.int64), tf.constant([[1.], [10.], [100.]])))
    assert ids.tolist() == [7, 2]
    assert sums.tolist() == [[101.], [10.]]


def test_occurrences_of_one_id_are_numbered_in_their_order():
    with tf.Graph().as_default(), tf.Session() as session:
        for ids, numbers in (([7, 2, 7, 7, 2], [0, 0, 1, 2, 1]), ([], [])):
            assert session.run(rows.occurrence_numbers(
                tf.constant(ids, tf.int64))).tolist() == numbers


def test_only_the_rows_named_are_written():
    with tf.Graph().as_default(), tf.Session() as session:
        shard = tf.get_variable('v', initializer=tf.zeros([3, 1]), use_resource=True)
        session.run(shard.initializer)
        session.run(rows.write(shard, tf.constant([2], tf.int64), tf.constant([[5.]])))
        assert session.run(rows.read(shard, tf.constant([2, 0], tf.int64))).tolist() == [[5.], [0.]]
