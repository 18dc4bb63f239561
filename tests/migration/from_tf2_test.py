"""Tables and slots of checkpoints that TensorFlow wrote are found wherever its objects had them."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import migrated_checkpoints as migrated
from harness.tf2_tables import api, features, trained
from harness.tf2_tables import stock as stock_of

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.bundle_writer import BundleWriter
from estimator_tpu_embedding.checkpoint.object_graph import GRAPH_KEY, Place
from estimator_tpu_embedding.migration import from_tf2
from estimator_tpu_embedding.migration.map_file import parse

ADAM = {'t': api.Adam(.1)}


def read(path, tables='embedding', lines='', optimizer='optimizer'):
    """({table: (optimizer, slots)}, names of other variables) that are found."""
    found = from_tf2.read(str(path), from_tf2.Paths(tables, optimizer), parse(lines))
    return ({one.name: (one.family and one.family.name, len(one.slots)) for one in found.tables},
            sorted(one.name for one in found.variables if not one.is_table))


def stock(optimizers, **kwargs):
    return stock_of(features(optimizers), **kwargs)


def save(path, *args, **objects):
    return tf.train.Checkpoint(*args, **objects).save(str(path / 'ckpt'))


ALL = {'sgd': (None, 0), 'a/b.c': ('Adagrad', 1), 'momentum': ('AdagradMomentum', 2),
       'ftrl': ('FTRL', 2), 'adam': ('Adam', 2)}


@pytest.mark.parametrize('made', [stock_of, trained])
def test_all_optimizers_of_the_class_are_recognized(made, tmp_path):
    assert read(save(tmp_path, embedding=made())) == (ALL, [])


def test_slots_of_a_function_of_the_user_are_below_the_variables_of_the_object(tmp_path):
    def make_slots(table, names, initializers):
        return {name: tf.Variable(functools.partial(one, table.shape, dtype=tf.float32),
                                  trainable=False) for name, one in zip(names, initializers)}

    path = save(tmp_path, embedding=stock({'t': api.Adam(
        .1, slot_variable_creation_fn=make_slots)}))
    assert 'embedding/_variables/t/momenta/.ATTRIBUTES/VARIABLE_VALUE' in Bundle.open(path).tensors
    assert read(path) == ({'t': ('Adam', 2)}, [])


def test_checkpoints_of_tensorflow_2_3_have_all_below_the_variables(tmp_path):
    module = tf.Module()
    module._variables = {'t': {name: tf.Variable(tf.zeros([4, 2])) for name in (
        'parameters', 'accumulators')}}
    assert read(save(tmp_path, embedding=module)) == ({'t': ('Adagrad', 1)}, [])


def test_a_table_that_is_called_as_a_slot_of_another_one_is_a_table(tmp_path):
    tables = [api.TableConfig(rows, 2, None, api.SGD(.1), name=name)
              for name, rows in (('user', 5), ('user/accumulators', 5))]
    path = save(tmp_path, embedding=stock_of(
        [api.FeatureConfig(table, output_shape=[8]) for table in tables]))
    assert read(path) == ({'user': (None, 0), 'user/accumulators': (None, 0)}, [])


LINES = ('table two/u -> u\ntable own.Sx -> x\n')


def test_a_line_of_the_map_names_tables_of_other_objects(tmp_path):
    path = save(tmp_path, embedding=stock(ADAM), two=stock({'u': api.FTRL(.1)}),
                **{'own/x': tf.Variable(np.arange(14, dtype='f4').reshape(7, 2))})
    assert read(path) == ({'t': ('Adam', 2)}, [
        'own.Sx', 'two/u', 'two/u.Saccumulators', 'two/u.Slinears'])
    assert read(path, lines=LINES) == (
        {'t': ('Adam', 2), 'two/u': ('FTRL', 2), 'own.Sx': (None, 0)}, [])
    assert read(path, 'none', lines=LINES)[0].keys() == {'two/u', 'own.Sx'}
    back = migrated.bytes_of(migrated.migrate(
        path, tmp_path / 'back', 'tf1', '--order', 'mod:2', '--step', '3', lines=LINES))
    assert back.keys() == {
        't', 't/Adam/m', 't/Adam/v', 'u', 'u/Ftrl', 'u/Ftrl_1', 'x', 'global_step'}
    np.testing.assert_array_equal(
        np.frombuffer(back['x'][2], 'f4')[::2], [0, 4, 8, 12, 2, 6, 10])  # Even ids first.


@pytest.mark.parametrize('make, slots, others', [
    (tf.keras.optimizers.legacy.Adam, ('Adam', 2), []),
    (tf.keras.optimizers.Adam, ('Adam', 2), []),
    (tf.keras.optimizers.Adagrad, ('Adagrad', 1), []),
    (tf.keras.optimizers.Ftrl, ('FTRL', 2), []),
    (tf.keras.optimizers.RMSprop, (None, 0), ['optimizer/_variables/1'])])
def test_slots_of_an_optimizer_of_keras_are_found_or_named(make, slots, others, tmp_path):
    """The newer ones number their variables; the graph says what they are, or the user must."""
    embedding, optimizer = stock({'t': None}), make(.1)
    rows = embedding._variables['t']['parameters']
    for _ in range(3):
        optimizer.apply_gradients([(tf.ones([7, 2]), rows)])
    path = save(tmp_path, embedding=embedding, optimizer=optimizer)
    assert read(path) == ({'t': slots}, others)
    found = from_tf2.read(path, from_tf2.Paths())
    assert Bundle.open(path).read(found.step, 0, 1).tolist() == [3]


def test_a_variable_of_the_model_that_keras_3_has_in_its_optimizer_is_one_of_the_model(tmp_path):
    keras = pytest.importorskip('keras', minversion='3.0')
    variable, optimizer = keras.Variable(1.), keras.optimizers.Adam(.1)
    optimizer.build([variable])
    path = save(tmp_path, embedding=stock(ADAM), optimizer=optimizer)
    assert read(path)[1] == ['optimizer/_trainable_variables/0']
    one, = (one for one in from_tf2.read(path, from_tf2.Paths()).variables if not one.is_table)
    assert one.family.name == 'Adam' and len(one.slots) == 2


def test_stacked_tables_of_sparsecores_are_refused(tmp_path):
    module = tf.Module()
    setattr(module, 'a_b', tf.Variable(tf.zeros([8, 8])))
    module._sparse_core_table_layouts = tf.Variable('layouts')
    errors = migrated.migrate(save(tmp_path, embedding=module), tmp_path / 'out', 'tf1', status=2)
    assert 'E655 checkpoint ckpt-1: each table must be a tensor of its own' in errors
    assert 'SparseCores' in errors


@pytest.mark.parametrize('graph', [
    b'', b'\xff', b'\x0a\x00', b'\x0a\x06\x0a\x04\x08\x63\x12\x00',
    b'\x0a\x14\x0a\x12\x08\x00\x12\x0eembedding_____'])
def test_a_graph_that_is_none_says_nothing_and_does_no_harm(graph, tmp_path):
    key = Place('embedding/t').key
    with BundleWriter(str(tmp_path / 'm-1')) as out:
        out.rows(key, 1, [2, 2])[0].append(np.zeros([2, 2], 'f4'))
        out.text(GRAPH_KEY, graph)
        out.finish()
    assert read(tmp_path / 'm-1', lines='table embedding/t -> t') == (
        {'embedding/t': (None, 0)}, [])


def test_no_tables_there_is_an_error_that_says_where_some_are(tmp_path):
    path = save(tmp_path, net=stock(ADAM))
    errors = migrated.migrate(path, tmp_path / 'out', 'tf1', status=2)
    assert 'E653' in errors and '"net"' in errors and '--source-path' in errors
