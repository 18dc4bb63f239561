import numpy as np
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.ops import rows


def test_duplicates_are_summed_in_order_of_first_occurrence():
    with tf.Graph().as_default(), tf.Session() as session:
        ids, sums = session.run(rows.sum_duplicates(
            tf.constant([7, 2, 7], tf.int64), tf.constant([[1.], [10.], [100.]])))
    assert ids.tolist() == [7, 2]
    assert sums.tolist() == [[101.], [10.]]


def test_cores_take_turns_from_the_one_on_which_the_row_resides():
    with tf.Graph().as_default(), tf.Session() as session:
        # Of 3 cores: id 7 resides on core 1, so the order is 1, 2, 0.
        found = session.run([rows.turns(tf.constant([7, 3, 2], tf.int64), core, 3)
                             for core in range(3)])
        assert np.transpose(found).tolist() == [[2, 0, 1], [0, 1, 2], [1, 2, 0]]
        assert session.run(rows.turns(tf.constant([], tf.int64), 0, 1)).size == 0


def test_only_the_rows_named_are_written():
    with tf.Graph().as_default(), tf.Session() as session:
        shard = tf.get_variable('v', initializer=tf.zeros([3, 1]), use_resource=True)
        session.run(shard.initializer)
        session.run(rows.write(shard, tf.constant([2], tf.int64), tf.constant([[5.]])))
        assert session.run(rows.read(shard, tf.constant([2, 0], tf.int64))).tolist() == [[5.], [0.]]
