"""Tables, slots and other variables of TF1 are found, and the order of their rows."""

import pathlib

import ml_dtypes
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from harness import migrated_checkpoints as migrated

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.migration import from_tf1
from estimator_tpu_embedding.migration.map_file import parse
from estimator_tpu_embedding.proto.codec import Config

ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)


def read(path, lines='', assume='div'):
    """What is found, by name."""
    found = from_tf1.read(str(path), CheckpointOptions(assume=assume), parse(lines))
    return {one.name: one for one in found.variables}, found


def config_of(*tables):
    """A config whose tables have the shape of `ROWS`."""
    made = Config()
    for name in tables:
        made.table_descriptor.add(name=name, vocabulary_size=4, dimension=2)
    return made


def beside(prefix, config):
    """Writes a config where TensorFlow writes the graph of a checkpoint."""
    pathlib.Path(f'{prefix}.meta').write_text(text_format.MessageToString(config))
    return prefix


@pytest.mark.parametrize('suffixes, family', [
    (['Adam', 'Adam_1'], 'Adam'), (['Adam/m', 'Adam/v'], 'Adam'), (['Ftrl', 'Ftrl_1'], 'FTRL'),
    (['Adagrad'], 'Adagrad'), (['RMSProp', 'RMSProp_1'], 'RMSProp'),
    (['RMSProp', 'RMSProp_1', 'RMSProp_2'], 'centered RMSProp'),
    (['CenteredRMSProp/ms', 'CenteredRMSProp/mg', 'CenteredRMSProp/mom'], 'centered RMSProp'),
    (['Lion'], 'Lion'), ([], None)])
def test_slots_of_the_engine_and_of_jobs_without_tpu_are_recognized(suffixes, family, tmp_path):
    names = ['t', *(f't/{suffix}' for suffix in suffixes)]
    found, _ = read(migrated.write_tf1(tmp_path, dict.fromkeys(names, ROWS)), 'table t -> t')
    assert found.keys() == {'t'} and list(found['t'].slots) == names[1:]
    assert (found['t'].family and found['t'].family.name) == family


@pytest.mark.parametrize('family', ['Adam', 'Adam of BERT'])
def test_slots_of_other_variables_are_those_of_their_optimizers(family, tmp_path):
    one, two = ('Adam', 'Adam_1') if family == 'Adam' else ('adam_m', 'adam_v')
    found, _ = read(migrated.write_tf1(tmp_path, {
        'w': ROWS, f'w/{one}': ROWS, f'w/{two}': ROWS, 'w/ExponentialMovingAverage': ROWS,
        'b': ROWS[0], f'b/{one}': ROWS[0], 'c': ROWS, 'c/Adagrad': ROWS[0]}))
    assert {name: (one.family and one.family.name, one.slots) for name, one in found.items()} == {
        'w': (family, (f'w/{one}', f'w/{two}')), 'w/ExponentialMovingAverage': (None, ()),
        'b': (None, ()), f'b/{one}': (None, ()), 'c': (None, ()), 'c/Adagrad': (None, ())}


def test_what_only_tf1_needs_is_set_aside(tmp_path):
    names = ['beta1_power', 'net/beta2_power_1', 'tpu_embedding_dummy_table_variable_t',
             'tpu_embedding_dummy_table_variable_t/Adam_1']
    _, found = read(migrated.write_tf1(tmp_path, {
        **dict.fromkeys(names, ROWS), 'global_step': np.int64(3), 'my_beta1_power': ROWS}))
    assert found.aside == set(names) and found.step == 'global_step'
    assert [one.name for one in found.variables] == ['my_beta1_power']


def test_the_config_names_tables_by_parts_of_their_variables(tmp_path):
    names = ['input_layer/user_embedding/embedding_weights', 'a_b_shared_embedding', 'own/table',
             'one/twice_embedding/embedding_weights', 'two/twice_embedding/embedding_weights',
             'same_embedding', 'user']
    tensors = {**dict.fromkeys(names, ROWS), 'user': ROWS[:3],
               'input_layer/user_embedding/embedding_weights/Adagrad': ROWS}
    path = beside(migrated.write_tf1(tmp_path, tensors), config_of(
        'tbl_user', 'tbl_a_b_shared_embedding', 'own/table', 'tbl_twice', 'tbl_same',
        'tbl_same_embedding'))
    found, contents = read(path)
    assert {name for name, one in found.items() if one.is_table} == {*names[:3]}
    assert contents.names_in_config == {
        names[0]: 'tbl_user', names[1]: 'tbl_a_b_shared_embedding', names[2]: 'own/table'}


def test_an_expression_that_fits_slots_too_means_the_tables(tmp_path):
    path = migrated.write_tf1(tmp_path, dict.fromkeys(
        ['a_emb', 'a_emb/Adagrad', 'b_emb', 'b_emb/Adagrad'], ROWS))
    found, _ = read(path, 'table re (.*_emb).* -> \\1')
    assert {name: one.slots for name, one in found.items()} == {
        'a_emb': ('a_emb/Adagrad',), 'b_emb': ('b_emb/Adagrad',)}


def test_a_table_that_is_called_as_a_slot_is_a_table_if_a_line_says_so(tmp_path):
    path = migrated.write_tf1(tmp_path, dict.fromkeys(['user', 'user/Adagrad'], ROWS))
    found, _ = read(path, 'table user -> user\ntable user/Adagrad -> other')
    assert {name: (one.is_table, one.slots) for name, one in found.items()} == {
        'user': (True, ()), 'user/Adagrad': (True, ())}


MOD = {'t': [ROWS[::2], ROWS[1::2]], 't/ExponentialMovingAverage': [ROWS[::2], ROWS[1::2]],
       'u': [ROWS[::2], ROWS[1::2]], 'w': ROWS, 'v': [ROWS[:2, 0], ROWS[2:, 0]]}


def test_slices_may_be_tables_where_nothing_says_the_order(tmp_path):
    """Neither a manifest nor a config says which variables are tables."""
    path = migrated.write_tf1(tmp_path, MOD)

    def suspects(assume, lines=''):
        return {name for name, one in read(path, lines, assume)[0].items() if one.may_be_table}

    assert suspects(None) == suspects('mod:2') == {'t', 't/ExponentialMovingAverage', 'u'}
    assert suspects('mod:2', 'table t -> t') == {'u'}
    beside(path, config_of('other'))  # A job of one host.
    assert suspects('div') == suspects(None) == set()


def written_by_tensorflow(folder, values, columns=()):
    """A checkpoint that a Saver writes; tensors of `columns` lie in two slices of columns."""
    with tf.Graph().as_default(), tf.Session() as session:
        for name, value in values.items():
            parts = np.split(value, 2, 1) if name in columns else [value]
            for first, part in enumerate(parts):
                made = tf.Variable(part, name=name)
                if name in columns:
                    made._set_save_slice_info(tf.Variable.SaveSliceInfo(
                        name, list(value.shape), [0, first], list(part.shape)))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(folder / 'model.ckpt'), 7)


def test_strings_and_numbers_of_all_types_go_along_bit_for_bit(tmp_path):
    values = {'words': [b'a', b'', b'\xff' * 300], 'half': np.float16([.1, 6e4]),
              'brain': np.array([[1.5, -0.], [1e38, 3]], ml_dtypes.bfloat16),
              'flags': [True, False], 'none': np.zeros([0, 3], 'f4'), 'global_step': np.int64(7),
              'complex': np.complex64([1j]), 'scalar': np.float64(.1)}
    source = written_by_tensorflow(tmp_path, values)
    there = migrated.migrate(source, tmp_path / 'there', 'tf2', lines=(
        'table brain -> brain\nre (words|half|flags|none|complex|scalar) -> net/\\1'))
    back = migrated.migrate(there, tmp_path / 'back', 'tf1', lines='re net/(.*) -> \\1')
    migrated.assert_equal_files(back, source)
    assert tf.train.load_checkpoint(there).get_tensor(
        'net/words/.ATTRIBUTES/VARIABLE_VALUE').tolist() == values['words']
    assert tf.train.load_checkpoint(back).get_tensor('words').tolist() == values['words']


def test_slices_of_columns_are_refused_unless_they_stay_behind(tmp_path):
    source = written_by_tensorflow(
        tmp_path, {'wide': ROWS, 't': ROWS, 'global_step': np.int64(7)}, ['wide'])
    assert len(Bundle.open(source).tensors['wide'].pieces) == 2
    lines = 'table t -> t\n'
    errors = migrated.migrate(source, tmp_path / 'out', 'tf2', lines=lines + 'wide -> net/wide',
                              status=2)
    assert 'E655' in errors and '"wide" must be stored as rows; got slices of columns' in errors
    there = migrated.migrate(source, tmp_path / 'out', 'tf2', lines=lines + 'drop wide')
    np.testing.assert_array_equal(migrated.value(there, 'embedding/t'), ROWS)


def test_no_other_variable_is_taken_for_the_table_of_a_column(tmp_path):
    tensors = {'in/a_embedding/embedding_weights': ROWS, 'tower/a/kernel': ROWS,
               'in/a_embedding/embedding_weights/ExponentialMovingAverage': ROWS,
               'in/grown_embedding/embedding_weights': np.tile(ROWS, [2, 1]),
               'tower/grown/kernel': ROWS}
    bundle = Bundle.open(migrated.write_tf1(tmp_path, tensors))
    assert from_tf1.table_names(bundle, config_of('tbl_a', 'tbl_grown')) == {
        'in/a_embedding/embedding_weights': 'tbl_a'}


def test_a_table_of_fewer_rows_than_hosts_is_found_though_its_config_has_a_row_per_host(tmp_path):
    bundle = Bundle.open(migrated.write_tf1(tmp_path, {'t': ROWS[:3], 'u': ROWS}))
    config = config_of('t', 'u')
    assert from_tf1.table_names(bundle, config) == {'u': 'u'}
    config.num_hosts = 4
    assert from_tf1.table_names(bundle, config) == {'t': 't', 'u': 'u'}
