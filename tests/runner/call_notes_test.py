"""What tensors look like in a note."""

import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.runner.call_notes import described


def test_structures_are_described_by_types_and_shapes():
    with tf.Graph().as_default():
        sparse = tf.sparse.placeholder(tf.int64, [None, 3])
        assert described((None, sparse, {2: tf.placeholder(tf.string), 'a': []}, object())) == (
            "[None, SparseTensor int64 [None, 3], {2: string of unknown shape, 'a': []}, object]")
        many = described({f'{number:02}': tf.constant(1.) for number in range(22)})
    assert many.endswith("'19': float32 [], and 2 more}")
