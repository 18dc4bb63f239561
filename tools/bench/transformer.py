"""A transformer of twelve layers over the activations of embedding columns: a model of many
operations."""

import tensorflow.compat.v1 as tf

LAYERS, TOKENS, HEADS, RATE = 12, 16, 4, .1


def loss_of(columns, features, labels, units):
    """Builds the model, of which `units` is the width of a hidden layer, and returns its loss."""
    net = tf.keras.layers.DenseFeatures(columns)(features)
    place = tf.get_variable('place', [TOKENS, net.shape[-1]])
    net = net[:, None, :] + place  # Every token of a sample has its activations.
    for number in range(LAYERS):
        with tf.variable_scope(f'layer_{number}'):
            net = _normal(net + _dropped(_attention(net)), 'first')
            hidden = tf.layers.dense(net, units, activation=_gelu, name='hidden')
            hidden = tf.layers.dense(hidden, net.shape[-1], name='back')
            net = _normal(net + _dropped(hidden), 'second')
    return tf.losses.sigmoid_cross_entropy(labels, tf.layers.dense(net[:, 0], 1))


def _attention(net):
    width = net.shape[-1]

    def heads(name):
        found = tf.layers.dense(net, width, name=name)
        return tf.transpose(tf.reshape(found, [-1, TOKENS, HEADS, width // HEADS]), [0, 2, 1, 3])

    query, key, value = heads('query'), heads('key'), heads('value')
    score = tf.matmul(query, key, transpose_b=True) * int(width // HEADS) ** -.5
    found = tf.transpose(tf.matmul(_dropped(tf.nn.softmax(score)), value), [0, 2, 1, 3])
    return tf.layers.dense(tf.reshape(found, [-1, TOKENS, width]), width, name='joined')


def _normal(net, name):
    with tf.variable_scope(name):
        mean, variance = tf.nn.moments(net, [-1], keepdims=True)
        scale = tf.get_variable('scale', [net.shape[-1]], initializer=tf.ones_initializer())
        offset = tf.get_variable('offset', [net.shape[-1]], initializer=tf.zeros_initializer())
        return (net - mean) * tf.rsqrt(variance + 1e-6) * scale + offset


def _gelu(net):
    return .5 * net * (1 + tf.tanh(.7978845608 * (net + .044715 * net**3)))


def _dropped(net):
    return tf.nn.dropout(net, rate=RATE)
