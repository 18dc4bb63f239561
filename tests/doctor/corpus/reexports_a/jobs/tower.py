"""Takes TensorFlow from the module above the package."""
from common import tf


def net(x):
    return tf.log(x + 1)
