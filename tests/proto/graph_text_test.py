"""The text of a graph is that of `text_format`, except for digits of floats that say no more."""

import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from estimator_tpu_embedding.proto.text import graph_text as text_of


def graph_def():
    """A graph with values of all kinds, a function and shapes."""
    with tf.Graph().as_default() as graph:
        tf.constant([1.5, 1e20, -2.5e-7, np.inf])
        tf.constant(['ä'.encode(), b'\x00\n"\'\\', b'\xff', b'attr {\n  }\n'])
        tf.constant(np.arange(6, dtype=np.int64).reshape(2, 3))
        with tf.device('/cpu:0'):
            one = tf.placeholder(tf.float64, [None, 3], 'one')
        tf.function(lambda x: x + 1.)(one)
        one.op._set_attr('_list', tf.AttrValue(list=tf.AttrValue.ListValue(f=[.5], b=[True])))
        return graph.as_graph_def(add_shapes=True)


def test_the_text_is_that_of_text_format():
    graph = graph_def()
    assert text_of(graph) == text_format.MessageToString(graph)


def test_floats_keep_their_values():
    graph = tf.GraphDef()
    values = np.random.default_rng(1).standard_normal(50).astype(np.float32)
    for k, value in enumerate(values):
        graph.node.add(name=f'n{k}', op='Const').attr['value'].tensor.float_val.append(value)
    assert text_format.Parse(text_of(graph), tf.GraphDef()) == graph


def test_a_function_with_attributes_of_its_own_has_them_in_order():
    graph = tf.GraphDef()
    function = graph.node.add(name='n', op='PartitionedCall').attr['f'].func
    for name in 'zyxwvutsrqponm':
        function.attr[name].i = 1
    assert text_of(graph) == text_format.MessageToString(graph)
