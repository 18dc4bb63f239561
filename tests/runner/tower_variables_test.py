"""Variables that a model keeps between its calls belong to every tower, and train as on one core.

The model is y = x v w with loss mean (y - 1)**2, over x = 1, 2, 3, 4. It keeps w, and makes v anew
in each call. Both begin at 1: d loss / dv = d loss / dw = mean 2 (x - 1) x = 2 (30 - 10) / 4 = 10.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator.tf_tpu import CrossShardOptimizer, cross_replica_sum
from estimator_tpu_embedding.runner.towers import Towers

ONE = tf.ones_initializer()


def scalar(name):
    return tf.get_variable(name, [], initializer=ONE)


def keras_layer():
    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='ones', name='kept')
    return lambda: layer(tf.ones([1, 1]))[0, 0]


def in_a_dict():
    kept = {}

    def weight():
        if 'w' not in kept:
            kept['w'] = scalar('w')
        return kept['w']

    return weight


def shared_column():
    identity = tf.feature_column.categorical_column_with_identity
    with tf.Graph().as_default():
        column, _ = tf.compat.v2.feature_column.shared_embeddings(
            [identity('a', 1), identity('b', 1)], 1, initializer=ONE)
    layer = tf.keras.layers.DenseFeatures([column])
    return lambda: layer({'a': tf.zeros([1, 1], tf.int64)})[0, 0]


KEPT = [keras_layer, in_a_dict, shared_column]


def trained(cores, weight, own=lambda: scalar('v'), order=('v', 'w'), loss_of=None):
    """All trainable variables after a step of rate .1, and what each core lists as trainable."""

    def model(core):
        x = np.split(np.float32([1, 2, 3, 4]), cores)[core]
        make = {'v': own, 'w': weight}
        values = {name: make[name]() for name in order}
        loss = tf.reduce_mean(tf.square(x * values['v'] * values['w'] - 1.))
        if loss_of is not None:
            loss += loss_of()
        names = [each.op.name for each in tf.trainable_variables()]
        return CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1)).minimize(loss), names

    with tf.Graph().as_default(), tf.Session() as session:
        results = Towers(cores).build(model)
        session.run(tf.global_variables_initializer())
        session.run(results[0][0])
        values = {each.op.name: session.run(each).item() for each in tf.trainable_variables()}
        return values, [names for _, names in results]


@pytest.mark.parametrize('order', ['vw', 'wv'])
@pytest.mark.parametrize('make', KEPT)
def test_a_kept_variable_trains_as_on_one_core_and_is_listed_by_every_core(make, order):
    values, listed = trained(2, make(), order=order)
    assert list(values.values()) == pytest.approx([0, 0], abs=1e-6)  # 1 - .1 * 10
    assert len(values) == 2 and listed == [list(values)] * 2


def test_one_made_anew_is_not_taken_for_the_kept_one_of_the_same_name():
    kept = []

    def own():
        return tf.Variable(1., name='w')

    def weight():
        if not kept:
            kept.append(tf.Variable(1., name='w'))
        return kept[0]

    for order in ('wv', 'vw'):
        kept.clear()
        values, listed = trained(2, weight, own, order)
        assert values == {'w': pytest.approx(0, abs=1e-6), 'w_1': pytest.approx(0, abs=1e-6)}
        assert listed == [['w', 'w_1']] * 2


def test_a_kept_layer_adds_its_regularization_on_every_core():
    layer = tf.layers.Dense(1, use_bias=False, kernel_initializer=ONE, name='kept',
                            kernel_regularizer=lambda w: tf.reduce_sum(w * w))
    values, _ = trained(2, lambda: layer(tf.ones([1, 1]))[0, 0],
                        loss_of=tf.losses.get_regularization_loss)
    # d (w * w) / dw = 2: 1 - .1 * (10 + 2)
    assert values == {'v': pytest.approx(0, abs=1e-6), 'kept/kernel': pytest.approx(-.2)}


def test_what_a_kept_optimizer_holds_belongs_to_every_core():
    optimizer = CrossShardOptimizer(tf.train.MomentumOptimizer(.1, .9))

    def model(core):
        return optimizer.minimize(tf.square(scalar('v') - core)), [
            each.op.name for each in tf.global_variables()]

    with tf.Graph().as_default():
        listed = [names for _, names in Towers(3).build(model)]
    assert listed == [['v', 'v/Momentum']] * 3


def test_gradients_meet_by_variable_whatever_the_order_of_a_core():
    def model(core):
        a, b = (tf.get_variable(name, [], initializer=ONE) for name in 'ab')
        pairs = [(tf.constant(1. + core), a), (tf.constant(10. + core), b)]
        return CrossShardOptimizer(tf.train.GradientDescentOptimizer(1.)).apply_gradients(
            pairs[::-1] if core else pairs)

    with tf.Graph().as_default(), tf.Session() as session:
        train_op = Towers(2).build(model)[0]
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        assert session.run(tf.global_variables()) == [1 - (1 + 2), 1 - (10 + 11)]


def test_variables_made_in_another_order_are_listed_in_that_of_core_0():
    def model(core):
        for name in 'ba' if core else 'ab':
            scalar(name)
        return [each.op.name for each in tf.trainable_variables()]

    with tf.Graph().as_default():
        assert Towers(2).build(model) == [['a', 'b']] * 2


def test_values_of_other_shapes_are_an_error_that_shows_them():
    with tf.Graph().as_default(), pytest.raises(ConfigError, match=r"E451.*'\(1,\)', '\(2,\)'"):
        Towers(2).build(lambda core: cross_replica_sum(tf.ones([core + 1])))
