"""A model over relative imports, two levels of aliases and a circular import."""
from __future__ import absolute_import

import tensorflow as tf
from tensorflow import layers as L  # expect: I302 tensorflow.layers

from . import data as _data
from .. import nowhere  # expect: E112


class Model(object):
    contrib = tf.contrib  # expect: I303 tensorflow.contrib; W203

    def build(self, x):
        x = L.dense(x, 4, kernel_initializer=self.contrib.layers.xavier_initializer())  # expect: I302 tensorflow.layers.dense
        x = L.batch_normalization(x)  # expect: I302 tensorflow.layers.batch_normalization
        return Model.contrib.layers.flatten(x), _data.tf.mul(x, 2)  # expect: E101 tensorflow.mul
