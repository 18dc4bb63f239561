"""Lost names by roads that look like something else."""
# run: etpe run --tf1 --contrib
# stops: tensorflow.mul
import importlib

import tensorflow
import tensorflow as tf, numpy as np

slim = importlib.import_module('tensorflow.contrib.slim')  # expect: I303 tensorflow.contrib.slim
mul = getattr(tf, 'mul')  # expect: E101 tensorflow.mul
log, pack = tf.log, tf.pack  # expect: I302 tensorflow.log; E101 tensorflow.pack
layers = tf.contrib.layers  # expect: I303 tensorflow.contrib.layers
shared = tensorflow
conv = layers.conv2d  # expect: I303 tensorflow.contrib.layers.conv2d
lstm = shared.contrib.rnn.LSTMCell  # expect: E103 tensorflow.contrib.rnn.LSTMCell
print(f'{tf.neg(1)}')  # expect: E101 tensorflow.neg
doubled = [tf.inv(x) for x in range(3)]  # expect: E101 tensorflow.inv
first = lambda x=tf.complex_abs: x  # expect: E101 tensorflow.complex_abs
chosen = tf.select if np else tf.batch_matmul  # expect: E101 tensorflow.select; E101 tensorflow.batch_matmul


class Cell(tf.contrib.rnn.RNNCell):  # expect: E103 tensorflow.contrib.rnn.RNNCell
    kind = tf.listdiff  # expect: E101 tensorflow.listdiff

    @tf.nobody_has_it  # expect: E101 tensorflow.nobody_has_it
    def call(self, x: tf.NobodyHasIt) -> 'tf.Tensor':  # expect: E101 tensorflow.NobodyHasIt
        import tensorflow.contrib.crf as crf  # expect: E103 tensorflow.contrib.crf
        return crf.viterbi_decode(x)  # expect: E103 tensorflow.contrib.crf.viterbi_decode


def late():
    global tf2
    import tensorflow.compat.v2 as tf2  # expect: W203


def later():
    return tf2.placeholder  # expect: E101 tensorflow.compat.v2.placeholder


if (contrib := tf.contrib):  # expect: I303 tensorflow.contrib; W203
    contrib.seq2seq.BasicDecoder  # expect: E103 tensorflow.contrib.seq2seq.BasicDecoder
for function in (tf.image_summary, tf.audio_summary):  # expect: E101 tensorflow.image_summary; E101 tensorflow.audio_summary
    print(function)
with tf.op_scope_of_nobody() as scope:  # expect: E101 tensorflow.op_scope_of_nobody
    print(scope)
tf.train.AdamOptimizer.nobody_has_it  # expect: E101 tensorflow.train.AdamOptimizer.nobody_has_it
