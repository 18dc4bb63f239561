"""`--like` fills a checkpoint that the new program has saved; everything in it is loaded."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from harness import migrated_checkpoints as migrated
from harness import replicas, tf1_tables, tfrs, tfrs_migrated
from harness import tfrs_models as models
from harness.checkpoints import flip
from harness.tf2_tables import assert_equal, stock

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.cli.main import main


class Program:
    """A new program: tables, a model and its optimizer."""

    def __init__(self, make):
        self.embedding = stock()
        layer = tf.keras.layers.Dense(1)
        self.model = tf.keras.Sequential([tf.keras.Input((3,)), layer])
        self.kernel, self.bias = layer.kernel, layer.bias
        self.optimizer = make(.25)
        build = getattr(self.optimizer, 'build', None) or self.optimizer._create_all_weights
        build([self.kernel, self.bias])
        self.checkpoint = tf.train.Checkpoint(
            embedding=self.embedding, model=self.model, optimizer=self.optimizer)


def require_dense(program):
    """The model and its slots have the values of TF1."""
    optimizer = program.optimizer
    for number, (name, rows) in enumerate(tf1_tables.DENSE.items()):
        variable = [program.kernel, program.bias][number]
        slots = ([optimizer.get_slot(variable, slot) for slot in 'mv']
                 if hasattr(optimizer, 'get_slot') else
                 [optimizer._momentums[number], optimizer._velocities[number]])
        for suffix, found in zip(('', '/Adam', '/Adam_1'), [variable, *slots], strict=True):
            np.testing.assert_array_equal(
                np.reshape(found, [-1, 1]), tf1_tables.value_of(f'{name}{suffix}', range(rows), 1))


def tensors():
    """A kernel of the shape of Keras."""
    found = tf1_tables.tensors('mod', 3)
    return {name: value[:, 0] if name.startswith('dense/bias') else value
            for name, value in found.items()}


LINES = migrated.TABLES + '\nre dense/(.*) -> model/layer-0/\\1'
LEGACY, NEWER = tf.keras.optimizers.legacy.Adam, tf.keras.optimizers.Adam


@pytest.mark.parametrize('make', [LEGACY, NEWER])
def test_all_that_the_program_has_is_loaded_and_all_that_is_there_is_used(make, tmp_path):
    """Paths that the program does not save under are understood, and numbered slots are found."""
    program = Program(make)
    like = program.checkpoint.save(str(tmp_path / 'new' / 'ckpt'))
    source = migrated.write_tf1(tmp_path, tensors())
    there = migrated.migrate(source, tmp_path / 'out', 'tf2', '--assume', 'mod:3', '--like', like,
                             '--map-back', tmp_path / 'map', lines=LINES)
    assert migrated.bytes_of(there, ['beta1_power', 'beta2_power']).keys() == (
        migrated.bytes_of(like).keys())
    other = Program(make)
    other.optimizer.learning_rate = .5
    status = other.checkpoint.restore(there)
    status.assert_consumed()
    status.assert_existing_objects_matched()
    assert_equal(other.embedding, tf1_tables.rows_of_tf2())
    require_dense(other)
    assert other.optimizer.iterations == tf1_tables.STEP
    assert other.checkpoint.save_counter == tf1_tables.STEP
    assert other.optimizer.learning_rate == .25  # As in the new program's checkpoint.
    back = migrated.migrate(there, tmp_path / 'back', 'tf1', '--order', 'mod:3',
                            lines='re model/layer_with_weights-0/(.*) -> dense/\\1')
    migrated.assert_equal_files(back, source)
    by_map = migrated.migrate(there, tmp_path / 'by map', 'tf1', '--order', 'mod:3', '--drop-rest',
                              lines=(tmp_path / 'map').read_text())
    assert migrated.bytes_of(source).items() <= migrated.bytes_of(by_map).items()


def test_objects_and_slots_are_found_in_the_folder_of_the_new_program(tmp_path):
    program = Program(LEGACY)
    tf.train.Checkpoint(job=program.checkpoint).save(str(tmp_path / 'new' / 'ckpt'))
    arguments = (migrated.write_tf1(tmp_path, tensors()), tmp_path / 'out', 'tf2', '--assume',
                 'mod:3', '--like', tmp_path / 'new')
    lines = LINES.replace('model/', 'job/model/')
    there = migrated.migrate(*arguments, '--map-back', tmp_path / 'map', lines=lines)
    found = migrated.bytes_of(there)
    paths = ('--object-path', 'job/embedding', '--optimizer-path', 'job/optimizer')
    said = migrated.migrate(*arguments, *paths, '--overwrite', lines=lines)
    assert found == migrated.bytes_of(said)
    assert (tmp_path / 'map').read_text().splitlines()[1] == (
        '# with --to tf1 --source-path job/embedding --optimizer-path '
        'job/optimizer --order mod:3')
    assert 'E654' in migrated.migrate(
        *arguments, '--object-path', 'embedding', lines=lines, status=2)


def test_keras_3_has_its_variables_in_lists(tmp_path):
    keras = pytest.importorskip('keras', minversion='3.0')

    def program():
        dense = keras.layers.Dense(1)
        model = keras.Sequential([keras.Input((3,)), dense])
        optimizer = keras.optimizers.Adam(.25)
        optimizer.build(model.trainable_variables)
        return tf.train.Checkpoint(dense=dense, optimizer=optimizer)

    like = program().save(str(tmp_path / 'new' / 'ckpt'))
    there = migrated.migrate(
        migrated.write_tf1(tmp_path, tensors()), tmp_path / 'out', 'tf2', '--assume', 'mod:3',
        '--like', like, lines='drop re (a/b.c|adam|ftrl|momentum|sgd).*\n'
        'dense/kernel -> dense/_kernel\ndense/bias -> dense/bias')
    other = program()
    status = other.restore(there)
    status.assert_existing_objects_matched()
    np.testing.assert_array_equal(
        other.dense.kernel.numpy(), tf1_tables.value_of('dense/kernel', range(3), 1))
    for slots, suffix in (other.optimizer._momentums, 'Adam'), (
            other.optimizer._velocities, 'Adam_1'):
        np.testing.assert_array_equal(
            slots[0].numpy(), tf1_tables.value_of(f'dense/kernel/{suffix}', range(3), 1))
    assert int(other.optimizer.iterations) == tf1_tables.STEP
    back = migrated.bytes_of(migrated.migrate(
        there, tmp_path / 'back', 'tf1', '--source-path', 'none', lines=(
            'table dense/_kernel -> dense/kernel\ndense/bias -> dense/bias')))
    source = migrated.bytes_of(migrated.write_tf1(tmp_path, tensors()))
    assert {name.replace('Adam/m', 'Adam').replace('Adam/v', 'Adam_1'): value
            for name, value in back.items()} == {
        name: value for name, value in source.items()
        if name.startswith(('dense/', 'beta', 'global_step'))}


@pytest.mark.soak
@pytest.mark.parametrize('kind', models.KINDS)
def test_models_of_tfrs_are_filled_whoever_makes_their_slots(kind, tmp_path):
    made = replicas.make('tpu 2')

    def program():
        with replicas.scope(made):
            model, optimizer = models.make(kind, False)
        models.build(model, optimizer, made)
        return model, optimizer, tf.train.Checkpoint(model=model, optimizer=optimizer)

    with tfrs.names_in_place():
        like = program()[2].save(str(tmp_path / 'new' / 'ckpt'))
        there = migrated.migrate(
            migrated.write_tf1(tmp_path, tfrs_migrated.tensors(kind)), tmp_path / 'out', 'tfrs',
            '--assume', 'mod:2', '--like', like,
            lines='table user -> user\ntable video -> video\nre (dense/.*) -> model/\\1')
        model, _, checkpoint = program()
        status = checkpoint.restore(there)
    status.assert_consumed()
    status.assert_existing_objects_matched()
    found, wanted = models.values_of(model), tfrs_migrated.values(kind)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, name)


@pytest.fixture(scope='module')
def like(tmp_path_factory):
    """A checkpoint of a new program with a legacy optimizer."""
    return Program(LEGACY).checkpoint.save(str(tmp_path_factory.mktemp('like') / 'ckpt'))


@pytest.mark.parametrize('changed, said', [
    ({'sgd': [np.zeros([2, 2], 'f4')] * 3}, '"embedding/sgd" must be float32 [6, 2], as "sgd" is; '
     'got float32 [7, 2]'),
    ({'other': np.zeros([6, 2], 'f4')}, 'it must have "model/layer-0/other" for "other"; got none.'
     '  Similar there: "model/layer_with_weights-0/'),
    ({'bias': np.zeros([1], 'f4')}, '"model/layer_with_weights-0/bias" must have one source; got')])
def test_what_does_not_fit_is_said_before_anything_is_written(changed, said, like, tmp_path):
    source = migrated.write_tf1(tmp_path, {**tensors(), **changed})
    lines = LINES + {'other': '\nother -> model/layer-0/other',
                     'bias': '\nbias -> model/layer_with_weights-0/bias'}.get(*changed, '')
    errors = migrated.migrate(source, tmp_path / 'out', 'tf2', '--assume', 'mod:3', '--like', like,
                              lines=lines, status=2)
    assert 'E654' in errors and said in errors, errors
    assert not (tmp_path / 'out').exists()


def test_the_report_names_the_values_that_stay(like, tmp_path, capsys):
    source = migrated.write_tf1(tmp_path, tensors())
    lines = tmp_path / 'map'
    lines.write_text(LINES)
    assert main(['migrate', 'checkpoint', source, str(tmp_path / 'out'), '--to', 'tf2', '--assume',
                 'mod:3', '--like', like, '--map', str(lines), '--dry-run']) == 0
    rates = ', '.join(f'"optimizer/{name}"' for name in (
        'beta_1', 'beta_2', 'decay', 'learning_rate'))
    assert f'values that stay as --like has them: {rates}' in (
        capsys.readouterr().out)


def test_a_damaged_pattern_is_not_taken(like, tmp_path):
    folder = migrated.copied(like, tmp_path / 'copy')
    path, = pathlib.Path(folder).glob('*.data-*')
    piece, = Bundle.open(like).tensors['optimizer/decay/.ATTRIBUTES/VARIABLE_VALUE'].pieces
    flip(path, piece.offset)
    errors = migrated.migrate(
        migrated.write_tf1(tmp_path, tensors()), tmp_path / 'out', 'tf2', '--assume', 'mod:3',
        '--like', folder / pathlib.Path(like).name, lines=LINES, status=2)
    assert 'E613' in errors and 'optimizer/decay' in errors
    assert not list((tmp_path / 'out').glob('ckpt*'))
