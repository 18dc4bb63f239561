"""TensorFlow alone, without this package, serves and restores tables that were trained here."""

import numpy as np
import tensorflow as tf
from harness import replicas
from harness.processes import run_python
from harness.tf2_tables import api, trained

OPTIMIZERS = {'sgd': api.SGD(.1), 'a/b.c': api.Adagrad(.1)}

SERVE = """
import sys
import numpy as np, tensorflow as tf
api = tf.tpu.experimental.embedding
values = np.load('values.npz')

def config():
    return [api.FeatureConfig(api.TableConfig(7 + number, 2, None, optimizer, 'sum', name))
            for number, (name, optimizer) in enumerate(
                {'sgd': api.SGD(.1), 'a/b.c': api.Adagrad(.1)}.items())]

def check(status, variables):
    status.assert_consumed()
    status.assert_existing_objects_matched()
    for table, own in variables.items():
        for name, variable in own.items():
            np.testing.assert_array_equal(variable.numpy(), values[f'tpu 2 {table} {name}'])

for folder in 'none', 'tpu 2':
    model = tf.saved_model.load(folder)
    for ids in [3, 1], [6]:
        found = model.serve(tf.constant(ids, tf.int64))
        for one, table in zip(found, ('sgd', 'a/b.c'), strict=True):
            np.testing.assert_array_equal(one, values[f'{folder} {table} parameters'][ids])

for cls in api.TPUEmbedding, api.TPUEmbeddingForServing:
    for first in False, True:
        own = cls(config(), None)
        if first:
            own.build()
        status = tf.train.Checkpoint(embedding=own).read('checkpoint')
        own.build()
        check(status, own._variables)
found = own(features=[tf.constant([3, 1])] * 2)
np.testing.assert_array_equal(found[0], values['tpu 2 sgd parameters'][[3, 1]])
assert 'estimator_tpu_embedding' not in sys.modules
"""


def serving(embedding, kept):
    """A module that serves the tables of an object that was trained."""
    by_name = {table.name: table for table in embedding._declared.tables}
    first, second = by_name['sgd'], by_name['a/b.c']
    module = tf.Module()
    if kept:
        module.embedding = embedding
    else:
        module.variables_of_tables = {
            name: own['parameters'] for name, own in embedding._variables.items()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def serve(ids):
        return api.serving_embedding_lookup(
            [ids, ids], None, embedding.embedding_tables,
            [api.FeatureConfig(first), api.FeatureConfig(second)])

    module.serve = serve
    return module


def test_tensorflow_alone_serves_saved_models_and_restores_checkpoints(tmp_path):
    values = {}
    for strategy in 'none', 'tpu 2':
        embedding = trained(strategy, optimizers=OPTIMIZERS)
        tf.saved_model.save(serving(embedding, kept=strategy != 'none'), str(tmp_path / strategy))
        values.update({f'{strategy} {table} {name}': value
                       for table, own in replicas.values_of(embedding).items()
                       for name, value in own.items()})
    tf.train.Checkpoint(embedding=embedding).write(str(tmp_path / 'checkpoint'))
    np.savez(tmp_path / 'values.npz', **values)
    ended = run_python('-c', SERVE, cwd=tmp_path, PYTHONPATH=None)
    assert ended.returncode == 0
