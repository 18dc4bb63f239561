"""Names that look like TensorFlow's and are not: nothing of this is a finding."""
# run: etpe run
import collections.abc
import unittest.mock

import tensorflow.compat.v1 as tf1


class Bundle:
    def __init__(self, tf, np):
        self.tf = tf
        self.np = np
        self.placeholder = self.tf.placeholder

    def mul(self, a, b):
        return self.tf.mul(a, b) if self.np.int else None


class Fake:
    contrib = unittest.mock.MagicMock()
    placeholder = mul = int = contrib


def apply(tf):
    return tf.contrib.slim.conv2d(1)  # expect: W201 tf


def local():
    np = Fake()
    collections = Fake()
    xrange = range
    return np.int, collections.mul, list(xrange(2))


def unicode(text):
    return text


tf = Fake()
print(Bundle(tf, tf).mul(1, 2), apply(tf), local(), unicode('x'), tf.placeholder, tf.mul)
print([tf.mul for tf in [Fake()]], (lambda tf: tf.contrib)(tf), collections.abc.Mapping)  # expect: W201 tf
with unittest.mock.patch.object(tf1, 'Session') as Session:
    print(tf1.Session(), Session)
print('reached the last line')
