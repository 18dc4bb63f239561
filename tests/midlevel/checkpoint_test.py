"""Tables and slots pass between our objects and TensorFlow's by its checkpoints, bit for bit."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas
from harness.tf2_tables import api, assert_equal, features, make, stock, trained, trainer

ADAGRAD = {'t': api.Adagrad(.1)}
KEYS = [
    'adam', 'adam.Smomenta', 'adam.Svelocities', 'a.Sb..c', 'a.Sb..c.Saccumulators', 'ftrl',
    'ftrl.Saccumulators', 'ftrl.Slinears', 'momentum', 'momentum.Saccumulators',
    'momentum.Smomenta', 'sgd']


def write(path, embedding, **others):
    return tf.train.Checkpoint(embedding=embedding, **others).write(str(path / 'checkpoint'))


def read(path, embedding, **others):
    return tf.train.Checkpoint(embedding=embedding, **others).read(path)


def require_all(status):
    status.assert_consumed()
    status.assert_existing_objects_matched()


@functools.cache
def trained_at(strategy, kernels):
    return trained(strategy, kernels)


def test_the_class_of_tensorflow_takes_what_ours_saves(tmp_path):
    ours, theirs = trained_at('tpu 8', 'native'), stock()
    path = write(tmp_path, ours)
    assert [key for key, _ in tf.train.list_variables(path)] == [
        '_CHECKPOINTABLE_OBJECT_GRAPH',
        *sorted(f'embedding/{key}/.ATTRIBUTES/VARIABLE_VALUE' for key in KEYS)]
    require_all(read(path, theirs))
    assert_equal(theirs, ours)


@pytest.fixture(scope='module')
def from_stock(tmp_path_factory):
    """What TensorFlow's object has and has written."""
    theirs = stock()
    for own in theirs._variables.values():
        for variable in own.values():
            variable.assign_add(tf.random.stateless_uniform(variable.shape, [1, 2]))
    return write(tmp_path_factory.mktemp('stock'), theirs), replicas.values_of(theirs)


@pytest.mark.parametrize('when', ['before build', 'after build', 'after training', 'twice'])
def test_ours_takes_what_the_class_of_tensorflow_saves(when, from_stock):
    path, expected = from_stock
    ours = make('tpu 2')
    if when != 'before build':
        ours.build()
    step = trainer(ours, 'tpu 2') if when in ('after training', 'twice') else None
    for _ in range(2 if when == 'twice' else 1):
        if step is not None:
            step(0)
        status = read(path, ours)
        ours.build()
        require_all(status)
        assert_equal(ours, expected)


def test_training_goes_on_from_a_checkpoint_of_any_number_of_replicas(tmp_path):
    """The values that were restored are those that the engine works on."""
    path = write(tmp_path, trained_at('tpu 8', 'native'))
    used, new = trained('tpu 2'), make('tpu 2')
    for ours in used, new:
        read(path, ours)
        trainer(ours, 'tpu 2')(5)
    assert_equal(new, used)
    ids = np.arange(8 * replicas.make('tpu 2').num_replicas_in_sync) * 6 % 7
    before, after = (one._variables['sgd']['parameters'].numpy()
                     for one in (trained_at('tpu 8', 'native'), new))
    counts = np.bincount(ids, minlength=7)[:, None]
    np.testing.assert_allclose(after, before - .1 * counts * (.3 * before + 1), 1e-5, 1e-6)


def test_models_beside_it_and_the_first_key_form_are_taken(tmp_path):
    """TensorFlow 2.3 tracked variables below `_variables` only."""
    ours, old = trained_at('none', 'native'), tf.Module()
    old._variables = {table: {name: tf.Variable(tf.zeros(variable.shape))
                              for name, variable in own.items()}
                      for table, own in ours._variables.items()}
    with replicas.make('tpu 2').scope():
        model = tf.Module()
        model.kernel = tf.Variable([1., 2])
    require_all(read(write(tmp_path, ours, model=model), old, model=model))
    assert_equal(old, ours)
    path = write(tmp_path, old, model=model)
    assert 'embedding/_variables/adam/momenta/.ATTRIBUTES/VARIABLE_VALUE' in dict(
        tf.train.list_variables(path))
    model.kernel.assign([0, 0])
    for built in False, True:
        new = make('tpu 2')
        if built:
            new.build()
        status = read(path, new, model=model)
        new.build()
        require_all(status)
        assert_equal(new, ours)
    assert model.kernel.numpy().tolist() == [1, 2]


def save_in_background(checkpoint, path):
    saved = checkpoint.save(path, tf.train.CheckpointOptions(enable_async=True))
    checkpoint.sync()
    return saved


@pytest.mark.parametrize('save', [tf.train.Checkpoint.write, save_in_background])
def test_what_is_saved_has_the_update_that_waits(save, tmp_path):
    plain, late = make(optimizers=ADAGRAD), make(optimizers=ADAGRAD, pipelined=True)
    steps, checkpoint = [], tf.train.Checkpoint(embedding=late)
    for one in plain, late:
        one.build()
        steps.append(trainer(one))
    for number in range(3):  # In the background the first copy is made in another way.
        for step in steps:
            step(number)
        saved = save(checkpoint, str(tmp_path / f'{number}'))
        found = stock(features(ADAGRAD))
        read(saved, found).expect_partial()  # A counter of saves is in it.
        assert_equal(found, plain)


def test_an_update_that_cannot_be_made_keeps_nobody_from_restoring(tmp_path):
    late = trained(optimizers=ADAGRAD, pipelined=True)
    path, saved = write(tmp_path, late), replicas.values_of(late)

    @tf.function
    def train(gradient):
        late.enqueue([tf.range(8) % 7])
        late.dequeue()
        late.apply_gradients([gradient])

    train(tf.fill([8, 2], np.nan))
    require_all(read(path, late))
    assert_equal(late, saved)
    train(tf.fill([8, 2], np.nan))
    with pytest.raises(tf.errors.InvalidArgumentError, match='finite'):
        write(tmp_path, late)
    assert_equal(late, saved)  # Given up.


def test_other_shapes_and_objects_without_optimizer(tmp_path):
    ours = trained(optimizers=ADAGRAD)
    path = write(tmp_path, ours)
    wider = make(optimizers=ADAGRAD, width=3)
    wider.build()
    with pytest.raises(ValueError, match=r'incompatible tensor with shape \(7, 2\) when attempting '
                       r'to restore variable with shape \(7, 3\) and name t'):
        read(path, wider)
    late = make(optimizers=ADAGRAD, width=3)
    read(path, late)
    with pytest.raises(ValueError, match=r'\(7, 2\).* is not compatible .*\(7, 3\)'):
        late.build()
    bare = make(optimizers={'t': None})
    status = read(path, bare)
    bare.build()
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match='t/accumulators'):
        status.assert_consumed()
    table = ours._variables['t']['parameters']
    assert_equal(bare, {'t': {'parameters': table.numpy()}})


def test_slots_that_a_function_of_the_user_makes_have_keys_of_their_own(tmp_path):
    def make_slots(table, names, initializers):
        return {name: tf.Variable(functools.partial(one, table.shape, dtype=tf.float32),
                                  trainable=False) for name, one in zip(names, initializers)}

    optimizers = {'t': api.Adam(.1, slot_variable_creation_fn=make_slots)}
    ours, theirs = trained(optimizers=optimizers), stock(features(optimizers))
    path = write(tmp_path, ours)
    assert [key.partition('/.')[0] for key, _ in tf.train.list_variables(path)][1:] == [
        'embedding/_variables/t/momenta', 'embedding/_variables/t/velocities', 'embedding/t']
    require_all(read(path, theirs))
    assert_equal(theirs, ours)
    new = make(optimizers=optimizers)
    status = read(write(tmp_path, theirs), new)
    new.build()
    require_all(status)
    assert_equal(new, ours)
