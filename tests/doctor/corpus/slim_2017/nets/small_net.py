"""A network of the time, with slim by attribute."""
import tensorflow as tf

slim = tf.contrib.slim  # expect: I303 tensorflow.contrib.slim


def small_arg_scope(weight_decay=0.0005):
    with slim.arg_scope([slim.conv2d, slim.fully_connected],  # expect: I303 tensorflow.contrib.slim.arg_scope; I303 tensorflow.contrib.slim.conv2d; I303 tensorflow.contrib.slim.fully_connected
                        weights_regularizer=slim.l2_regularizer(weight_decay)) as scope:  # expect: I303 tensorflow.contrib.slim.l2_regularizer
        return scope


def small_net(images, num_classes):
    net = slim.conv2d(images, 8, [3, 3])  # expect: I303 tensorflow.contrib.slim.conv2d
    net = tf.reduce_mean(net, [1, 2])
    return slim.fully_connected(net, num_classes, activation_fn=None)  # expect: I303 tensorflow.contrib.slim.fully_connected
