"""The one place that says which TensorFlow is meant: that of TensorFlow 1."""
import tensorflow.compat.v1 as tf
from tensorflow.compat.v1.keras import layers as keras_layers  # expect: I304 tensorflow.compat.v1.keras.layers

tf.disable_v2_behavior()
__all__ = ['tf', 'keras_layers', 'session']


def session():
    return tf.Session()
