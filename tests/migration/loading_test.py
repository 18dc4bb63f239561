"""What is migrated from TF1 is loaded by the real classes of TF2, bit for bit, in every way."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import migrated_checkpoints as migrated
from harness import tf1_tables
from harness.parts import soak_except
from harness.tf2_tables import assert_equal, features, make, module
from tensorflow.python.tpu import tpu_embedding_for_serving, tpu_embedding_v2

ORDERS = [(strategy, hosts) for strategy in ('div', 'mod') for hosts in tf1_tables.HOSTS]
CLASSES = {
    'stock': lambda optimizers=None: tpu_embedding_v2.TPUEmbedding(features(optimizers), None),
    'serving': lambda optimizers=None: tpu_embedding_for_serving.TPUEmbeddingForServing(
        features(optimizers), None),
    'ours': lambda optimizers=None: make('none', optimizers=optimizers),
    'ours, tpu 2': lambda optimizers=None: make('tpu 2', optimizers=optimizers)}


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """The checkpoint of TF1 by strategy and hosts, which is made once."""
    folder = tmp_path_factory.mktemp('tf1')
    return functools.cache(lambda strategy, hosts: migrated.write_tf1(
        folder / f'{strategy} {hosts}', tf1_tables.tensors(strategy, hosts)))


@pytest.fixture(scope='module')
def results(sources, tmp_path_factory):
    """What it becomes in TF2."""
    folder = tmp_path_factory.mktemp('tf2')

    def result(strategy, hosts, *arguments):
        return migrated.migrate(
            sources(strategy, hosts), folder / f'{strategy} {hosts}{arguments}', 'tf2', '--assume',
            'div' if strategy == 'div' else f'mod:{hosts}', *arguments,
            lines=migrated.TABLES + '\n' + migrated.DENSE)
    return functools.cache(result)


def program():
    """The other variables."""
    kernel, bias = (tf.Variable(tf.zeros([rows, 1])) for rows in tf1_tables.DENSE.values())
    return module(dense=module(kernel=kernel, bias=bias))


def kept(optimizer, model):
    """Makes the variables of an optimizer."""
    optimizer._create_all_weights([model.dense.kernel, model.dense.bias])


def require_dense(model, optimizer):
    for name, variable in (('dense/kernel', model.dense.kernel), ('dense/bias', model.dense.bias)):
        rows = tf1_tables.DENSE[name]
        for suffix, found in (('', variable), ('/Adam', optimizer.get_slot(variable, 'm')),
                              ('/Adam_1', optimizer.get_slot(variable, 'v'))):
            np.testing.assert_array_equal(
                found, tf1_tables.value_of(name + suffix, range(rows), 1), name + suffix)


@pytest.mark.parametrize('strategy, hosts', soak_except(ORDERS, 0, 6))
@pytest.mark.parametrize('name', CLASSES)
def test_every_class_takes_tables_slots_and_model_before_and_after_build(
        name, strategy, hosts, results):
    path = results(strategy, hosts)
    for built in False, True:
        embedding, model = CLASSES[name](), program()
        if built:
            embedding.build()
        optimizer = tf.keras.optimizers.legacy.Adam(.25)
        if built:
            kept(optimizer, model)
        status = tf.train.Checkpoint(
            embedding=embedding, model=model, optimizer=optimizer).restore(path)
        if not built:
            embedding.build()
            kept(optimizer, model)
        assert_equal(embedding, tf1_tables.rows_of_tf2())
        require_dense(model, optimizer)
        assert optimizer.iterations == tf1_tables.STEP
        # A checkpoint of TF1 lacks the rates of the optimizer; those of the program stay.
        with pytest.raises(AssertionError, match='4 Python objects .*learning_rate|4 Python '
                           'objects .*beta_2'):
            status.assert_existing_objects_matched()
        assert optimizer.learning_rate == .25


def test_what_the_program_saves_next_replaces_nothing(results, tmp_path):
    """TensorFlow numbers checkpoints by a counter that is in them."""
    embedding = CLASSES['stock']()
    checkpoint = tf.train.Checkpoint(embedding=embedding)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 3)
    checkpoint.restore(results('div', 1)).expect_partial()
    embedding.build()
    assert manager.save().endswith(f'ckpt-{tf1_tables.STEP + 1}')


def test_tables_go_into_the_device_after_the_values_are_there(results, monkeypatch):
    """TensorFlow's class loads them by a callback, which it looks for in the checkpoint."""
    seen = []
    monkeypatch.setattr(tpu_embedding_v2.TPUEmbedding, '_load_variables', lambda self: seen.append(
        self._variables['adam']['momenta'].numpy()))
    embedding = CLASSES['stock']()
    embedding.build()
    seen.clear()
    tf.train.Checkpoint(embedding=embedding).restore(results('div', 1)).expect_partial()
    np.testing.assert_array_equal(seen, [tf1_tables.rows_of_tf2()['adam']['momenta']])


@pytest.mark.parametrize('path, wrap', [
    ('', lambda one: tf.train.Checkpoint(one)),
    ('net/inner', lambda one: tf.train.Checkpoint(net=module(inner=one))),
    ('a.Sb', lambda one: tf.train.Checkpoint(**{'a/b': one}))])
@pytest.mark.parametrize('name', ['stock', 'ours'])
def test_the_object_may_be_anywhere(name, path, wrap, sources, tmp_path):
    found = migrated.migrate(
        sources('mod', 2), tmp_path / 'out', 'tf2', '--assume', 'mod:2', '--object-path', path,
        '--drop-rest', lines=migrated.TABLES + '\ndrop global_step')
    for built in False, True:
        embedding = CLASSES[name]()
        if built:
            embedding.build()
        status = wrap(embedding).restore(found)
        embedding.build()
        status.assert_consumed()
        assert_equal(embedding, tf1_tables.rows_of_tf2())
