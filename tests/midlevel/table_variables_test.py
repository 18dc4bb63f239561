"""Variables of tables are made once, are held once, and end with their object."""

import functools
import gc

import numpy as np
import pytest
import tensorflow as tf
from harness import memory, replicas
from harness.tf2_tables import api, assert_equal, make, stock

from estimator_tpu_embedding import _tf
from estimator_tpu_embedding.errors import ConfigError


def test_an_initializer_that_makes_parts_makes_the_whole():
    def initializer(shape, dtype, shard_info, scale):
        return scale * tf.ones(shape, dtype) + shard_info.offset[0] + shard_info.shape[0]

    config = api.TableConfig(9, 2, functools.partial(initializer, scale=.5), name='t')
    embedding = replicas.embedding_under(
        replicas.make('tpu 2'), api.FeatureConfig(config, output_shape=[2]), api.SGD())
    embedding.build()
    np.testing.assert_array_equal(replicas.values_of(embedding)['t']['parameters'], 9.5)


@pytest.mark.serial
def test_tables_and_slots_are_held_once(tmp_path):
    """Of bytes of table and slot; a save and a step hold nothing but batches."""
    table = api.TableConfig(120_000, 128, None, api.Adagrad(.1), 'sum', 't')
    size, ids = 2 * 4 * table.vocabulary_size * table.dim, tf.range(64, dtype=tf.int64)
    for resumed in False, True:
        ours = replicas.embedding_under(
            replicas.make('none'), [api.FeatureConfig(table, output_shape=[64])], None)
        checkpoint = tf.train.Checkpoint(embedding=ours)
        if resumed:
            checkpoint.read(str(tmp_path / 'saved'))

        @tf.function
        def train(ours=ours):
            ours.enqueue([ids])
            ours.apply_gradients(ours.dequeue())

        save = functools.partial(checkpoint.write, str(tmp_path / 'saved'))
        taken = [memory.highest_rss_of(each) / size for each in (
            train, train, save, ours.embedding_tables[table].numpy)]
        assert all(np.less(taken, [1.35, .1, .2, .6])), taken  # The last one is an array.
        del ours, checkpoint, train, save
        gc.collect()


def test_the_seed_of_a_process_makes_the_tables_of_tensorflow():
    def config():
        return [api.FeatureConfig(api.TableConfig(9, 2, name=name)) for name in 'ab']

    before = _tf.global_seed()
    try:
        tf.random.set_seed(3)
        ours = replicas.embedding_under(replicas.make('none'), config(), None)
        ours.build()
        tf.random.set_seed(3)
        assert_equal(ours, stock(config()))
    finally:
        tf.random.set_seed(before)


@pytest.mark.parametrize('make_slot, got', [
    (lambda: tf.Variable(tf.zeros([7, 3])), r'EagerTableVariable \(7, 3\)'),
    (lambda: tf.zeros([7, 2]), r'EagerTensor \(7, 2\)'), (lambda: None, 'NoneType')])
def test_slots_that_a_function_of_the_user_makes_must_be_variables_like_the_table(make_slot, got):
    optimizer = api.Adagrad(.1, slot_variable_creation_fn=lambda *_: {'accumulators': make_slot()})
    with pytest.raises(ConfigError, match=f'E447 table "t".* for "accumulators" {got}'):
        make(optimizers={'t': optimizer}).build()
