"""Checkpoints pass between class and layer, with slots of either, and come back as they were."""

import numpy as np
import pytest
import tensorflow as tf
from harness import migrated_checkpoints as migrated
from harness import tf1_tables
from harness.tf2_tables import features
from harness.tf2_tables import stock as stock_of

KERAS = {'sgd': [], 'a/b.c': ['Adagrad'], 'ftrl': ['Ftrl', 'Ftrl_1'], 'adam': ['Adam/m', 'Adam/v']}
"""Tables whose optimizers Keras and the layer of TFRS have."""
SLOTS = {'a/b.c': ['accumulator'], 'ftrl': ['accumulator', 'linear'], 'adam': ['m', 'v']}
LINES = '\n'.join(f'table {name} -> {name}' for name in KERAS) + '\nre (dense/.*) -> model/\\1'


@pytest.fixture(scope='module')
def class_of_tf2(tmp_path_factory):
    """A checkpoint of the class, of `mod` rows on 3 hosts."""
    folder = tmp_path_factory.mktemp('between')
    source = migrated.write_tf1(folder, tf1_tables.tensors('mod', 3, KERAS))
    return source, migrated.migrate(source, folder / 'tf2', 'tf2', '--assume', 'mod:3', lines=LINES)


LAYER = ('--object-path', 'net/embedding', '--source-path', 'embedding')
BACK = ('--object-path', 'embedding', '--source-path', 'net/embedding')


@pytest.mark.parametrize('slots', ['keras', 'midlevel'])
def test_from_the_class_to_the_layer_and_back(slots, class_of_tf2, tmp_path):
    source, path = class_of_tf2
    there = migrated.migrate(path, tmp_path / 'layer', 'tfrs', '--slots', slots, *LAYER)
    wanted = {f'net/embedding/_tpu_embedding/{escaped}{end}' for name, escaped in zip(
        KERAS, ['sgd', 'a.Sb..c', 'ftrl', 'adam']) for end in ['', *(
            f'/.OPTIMIZER_SLOT/optimizer/{slot}' if slots == 'keras' else
            f'.S{tf1_tables.SLOTS[suffix]}'
            for slot, suffix in zip(SLOTS.get(name, []), KERAS[name]))]}
    assert {key.removesuffix('/.ATTRIBUTES/VARIABLE_VALUE') for key in migrated.bytes_of(there)
            if key.startswith('net')} == wanted
    back = migrated.migrate(there, tmp_path / 'back', 'tf2', *BACK)
    migrated.assert_equal_files(back, path)
    of_tf1 = migrated.migrate(there, tmp_path / 'tf1', 'tf1', '--order', 'mod:3', '--source-path',
                              'net/embedding', lines='re model/(.*) -> \\1')
    migrated.assert_equal_files(of_tf1, source)


def test_slots_of_keras_are_loaded_where_its_optimizer_trains_the_tables(class_of_tf2, tmp_path):
    source, _ = class_of_tf2
    path = migrated.migrate(source, tmp_path / 'out', 'tf2', '--assume', 'mod:3', '--slots',
                            'keras', lines=LINES)
    for name, make in (('a/b.c', tf.keras.optimizers.legacy.Adagrad),
                       ('ftrl', tf.keras.optimizers.legacy.Ftrl),
                       ('adam', tf.keras.optimizers.legacy.Adam)):
        for built in True, False:
            embedding, optimizer = stock_of(features(
                dict.fromkeys(KERAS))), make(.1)
            table = embedding._variables[name]['parameters']
            if built:
                optimizer._create_all_weights([table])
            tf.train.Checkpoint(embedding=embedding, optimizer=optimizer).restore(path)
            optimizer._create_all_weights([table])
            rows = range(len(tf1_tables.rows_of_tf2(KERAS)[name]['parameters']))
            np.testing.assert_array_equal(table, tf1_tables.value_of(name, rows))
            for slot, suffix in zip(SLOTS[name], KERAS[name]):
                np.testing.assert_array_equal(
                    optimizer.get_slot(table, slot),
                    tf1_tables.value_of(f'{name}/{suffix}', rows), slot)
