"""Puts names of TensorFlow 1 into TensorFlow 2."""
import tensorflow as tf

tf.placeholder = tf.compat.v1.placeholder
tf.compat.v1.disable_eager_execution()
