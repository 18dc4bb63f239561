"""Which names of calls stand for each other, and which graphs of Keras are rehearsals."""

import tensorflow as tf

from estimator_tpu_embedding.midlevel import calls


def test_names_of_a_graph_pair_by_their_order_of_appearance():
    names = calls.CallNames()
    with tf.Graph().as_default():
        assert [names.common(name, 0) for name in ('a', 'b', 'a')] == ['a', 'b', 'a']
        assert [names.common(name, 1) for name in ('x', 'b', 'x', 'b')] == ['a', 'b', 'a', 'b']
        assert [names.common(name, 2) for name in ('b', 'a', 'b')] == ['a', 'b', 'a']
        assert names.common(None, 1) is None


def test_a_name_that_replica_0_has_not_used_stands_for_itself():
    names = calls.CallNames()
    with tf.Graph().as_default():
        assert names.common('1', 0) == '1'
        assert [names.common(name, 1) for name in ('2', '3')] == ['1', '3']


def test_another_graph_starts_anew_and_loops_belong_to_their_function():
    names, found = calls.CallNames(), []

    @tf.function(autograph=False)
    def function():
        names.common('1', 0)
        tf.while_loop(lambda _: False, lambda one: [found.append(names.common('2', 1)) or one],
                      [tf.constant(0)])

    function()
    assert found == ['1']
    with tf.Graph().as_default():
        assert names.common('2', 1) == '2'


def test_only_a_scratch_graph_of_keras_is_a_rehearsal():
    found = []
    tf.function(lambda: found.append(calls.is_rehearsal()), autograph=False)()
    with tf.Graph().as_default():
        found.append(calls.is_rehearsal())
    assert found == [False, False] and not calls.is_rehearsal()

    class Layer(tf.keras.layers.Layer):
        def call(self, inputs):
            found.append(calls.is_rehearsal())
            return inputs

    Layer()(tf.keras.Input([2]))
    assert found[2:] == [True]


def test_a_name_from_outside_of_replicas_takes_no_part_in_counting():
    names = calls.CallNames()
    with tf.Graph().as_default():
        assert names.common('b', 1, outside=True) == 'b'
        assert [names.common(name, 0) for name in ('a', 'b', '1')] == ['a', 'b', '1']
        assert [names.common(name, 1) for name in ('b', 'a', '2')] == ['b', 'a', '1']
        # Known in replica 0, thus no name from outside: gradients come for all replicas at once.
        assert names.common('1', 0, outside=True) == '1'
        assert names.common('3', 1) == '3'
