"""Functions in a SavedModel look up as in training, for batches of any size; they train nothing.

TensorFlow alone, without this package, serves and restores tables that were trained here.
"""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas
from harness.processes import run_python
from harness.tf2_tables import api, trained

from estimator_tpu_embedding.errors import CallError, InputShapeError

SAMPLES = [[3, 1], [], [0], [2, 2, 1]]
COLUMN = [[3], [1], [0], [2]]
WEIGHTS = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1., 3, 2], [4, 4])


def table():
    return api.TableConfig(
        4, 1, lambda shape, dtype: tf.constant([[0.], [1], [10], [100]]), combiner='mean')


def weighted():
    return tf.SparseTensor(WEIGHTS.indices, tf.constant([3, 1, 0], tf.int64), WEIGHTS.dense_shape)


CASES = {  # the FeatureConfig's arguments, ids, weights, activations
    'dense': ({}, tf.constant([3, 1]), None, [[100], [1]]),
    'a column': ({}, tf.constant(COLUMN), None, [[100], [1], [0], [10]]),
    'rows into cells': ({'output_shape': [2, 2]}, tf.constant(COLUMN), None,
                        [[[100], [1]], [[0], [10]]]),
    'sparse': ({}, replicas.sparse(SAMPLES), None, [[50.5], [0], [0], [7]]),
    'weighted': ({}, weighted(), WEIGHTS, [[25.75], [0], [0], [0]]),
    'sparse rows into cells': ({'output_shape': [2, 2]}, replicas.sparse(SAMPLES), None,
                               [[[50.5], [0]], [[0], [7]]]),
    'a sequence': ({'max_sequence_length': 2}, replicas.sparse(SAMPLES), None,
                   [[[100], [1]], [[0], [0]], [[0], [0]], [[10], [10]]]),
    'ragged': ({}, tf.ragged.constant(SAMPLES), None, [[50.5], [0], [0], [7]]),
}


def any_batch(value):
    """The spec of a value with any number of samples."""
    spec = tf.type_spec_from_value(value)
    shape = [None, *spec.shape[1:]]
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(shape, spec.dtype, ragged_rank=1)
    return type(spec)(shape, spec.dtype)


def module_of(embedding, *specs):
    """A module with a function that looks up, and one that trains."""
    module = tf.Module()
    module.embedding = embedding

    @tf.function(input_signature=specs)
    def look_up(ids, weights=None):
        embedding.enqueue(ids, weights, name='1')
        return embedding.dequeue(name='1')

    @tf.function(input_signature=specs)
    def train(ids, weights=None):
        embedding.enqueue(ids, weights, name='1')
        embedding.apply_gradients(tf.ones_like(embedding.dequeue(name='1')), name='1')

    module.look_up, module.train = look_up, train
    return module


@pytest.mark.parametrize('case', CASES)
def test_a_saved_function_looks_up_as_in_training(case, tmp_path):
    config, ids, weights, activations = CASES[case]
    made = replicas.make('tpu 1')
    embedding = replicas.embedding_under(
        made, api.FeatureConfig(table(), **config), api.SGD(1.))
    given = [ids] if weights is None else [ids, weights]
    module = module_of(embedding, *map(any_batch, given))

    @tf.function
    def step():
        embedding.enqueue(*given, training=False)
        return embedding.dequeue()

    assert made.run(step).numpy().tolist() == activations
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.look_up(*given).numpy().tolist() == activations
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
            'E541 apply_gradients: a SavedModel trains no tables; .* restore a checkpoint')):
        loaded.train(*given)
    assert loaded.look_up(*given).numpy().tolist() == activations


def module_of_watched():
    """A module of an object with a feature `watched`, which is built."""
    module = tf.Module()
    module.embedding = replicas.embedding_under(
        replicas.make('tpu 2'), {'watched': api.FeatureConfig(table(), output_shape=[2])},
        api.SGD(1.))
    module.embedding.build()
    return module


def test_each_function_looks_up_what_it_enqueued(tmp_path):
    module = module_of_watched()
    embedding = module.embedding

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)] * 2)
    def look_up(first, second):
        embedding.enqueue({'watched': first}, name='first')
        embedding.enqueue({'watched': second}, name='second')
        embedding.enqueue({'watched': first + 1})
        embedding.enqueue({'watched': first - 1})  # Without names, in order.
        found = [embedding.dequeue(name=name)['watched'] for name in (
            'second', None, None, 'first')]
        return tf.concat(found, 0)

    module.look_up = look_up
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.look_up([1, 2], [3]).numpy().ravel().tolist() == [100, 10, 100, 0, 1, 1, 10]


@pytest.mark.parametrize('call, error, text', [
    (lambda one: one.dequeue(name='1'), CallError,
     'E541 dequeue: a function of a SavedModel must enqueue the ids itself'),
    (lambda one: one.enqueue({'x': tf.constant([1])}, name='1'), InputShapeError, 'E531'),
    (lambda one: one.enqueue({'watched': tf.constant(1)}, name='1'), InputShapeError, 'E532')])
def test_what_no_saved_function_can_do_is_an_error_while_it_is_saved(
        call, error, text, tmp_path):
    module = module_of_watched()

    @tf.function(input_signature=[])
    def look_up():
        call(module.embedding)
        return tf.constant(0)

    module.look_up = look_up
    with pytest.raises(error, match=text):
        tf.saved_model.save(module, str(tmp_path))


OPTIMIZERS = {'sgd': api.SGD(.1), 'a/b.c': api.Adagrad(.1)}

SERVE = """
import sys
import numpy as np, tensorflow as tf
api = tf.tpu.experimental.embedding
values = np.load('values.npz')

for folder in 'none', 'tpu 2':
    model = tf.saved_model.load(folder)
    for ids in [3, 1], [6]:
        found = model.serve(tf.constant(ids, tf.int64))
        for one, table in zip(found, ('sgd', 'a/b.c'), strict=True):
            np.testing.assert_array_equal(one, values[f'{folder} {table} parameters'][ids])

own = api.TPUEmbeddingForServing([api.FeatureConfig(api.TableConfig(
    7 + number, 2, None, optimizer, 'sum', name)) for number, (name, optimizer) in enumerate(
        {'sgd': api.SGD(.1), 'a/b.c': api.Adagrad(.1)}.items())], None)
status = tf.train.Checkpoint(embedding=own).read('checkpoint')
own.build()
status.assert_consumed()
found = own(features=[tf.constant([3, 1])] * 2)
np.testing.assert_array_equal(found[0], values['tpu 2 sgd parameters'][[3, 1]])
assert 'estimator_tpu_embedding' not in sys.modules
"""


def serving(embedding):
    """A module that serves the tables of an object that was trained."""
    by_name = {table.name: table for table in embedding._declared.tables}
    module = tf.Module()
    module.embedding = embedding

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def serve(ids):
        return api.serving_embedding_lookup(
            [ids, ids], None, embedding.embedding_tables,
            [api.FeatureConfig(by_name[name]) for name in OPTIMIZERS])

    module.serve = serve
    return module


def test_tensorflow_alone_serves_saved_models_and_restores_checkpoints(tmp_path):
    values = {}
    for strategy in 'none', 'tpu 2':
        embedding = trained(strategy, optimizers=OPTIMIZERS)
        tf.saved_model.save(serving(embedding), str(tmp_path / strategy))
        values.update({f'{strategy} {table} {name}': value
                       for table, own in replicas.values_of(embedding).items()
                       for name, value in own.items()})
    tf.train.Checkpoint(embedding=embedding).write(str(tmp_path / 'checkpoint'))
    np.savez(tmp_path / 'values.npz', **values)
    ended = run_python('-c', SERVE, cwd=tmp_path, PYTHONPATH=None)
    assert ended.returncode == 0
