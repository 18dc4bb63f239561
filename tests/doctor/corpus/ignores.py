"""Comments that ignore a finding on their line, by code or altogether."""
# run: etpe run --tf1
# stops: tensorflow.sub
import tensorflow as tf


def unused():
    double = tf.mul(2, 2)  # etpe: ignore[E101]
    both = tf.pack([1, 2])  # etpe: ignore
    return double, both


x = tf.placeholder(tf.float32, [])  # etpe: ignore[I302, E101]
other = tf.sub(2, 1)  # etpe: ignore[W201]  # expect: E101 tensorflow.sub
text = '''
# etpe: ignore[E101]'''; third = tf.neg(1)  # expect: E101 tensorflow.neg
print('reached the last line')
