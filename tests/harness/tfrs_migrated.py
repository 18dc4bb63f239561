"""Loads migrated checkpoints into models of TFRS, trains on, and saves that.

    python -m harness.tfrs_migrated FOLDER

FOLDER has a folder for each of `CASES`, with the checkpoint in `to`. This process lacks the
package, while tests use these functions where it is.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf
from harness import tf1_tables
from harness import tfrs_models as models

SUFFIXES = {'sgd': [], 'adagrad': ['Adagrad'], 'adam': ['Adam/m', 'Adam/v'],
            'ftrl': ['Ftrl', 'Ftrl_1']}
"""The slots of a table in TF1, by the optimizer."""
DENSE_SUFFIXES = {**SUFFIXES, 'adam': ['Adam', 'Adam_1']}
DENSE = {'dense/kernel': 4, 'dense/bias': 1}
CASES = [*(f'{kind}, subclassed' for kind in models.KINDS), 'adam, functional',
         'own adagrad, functional', 'adagrad, model', 'ftrl, weights']
"""The optimizer, and how the checkpoint is read: by `tf.train.Checkpoint` with the optimizer, by
one with a compiled model alone, or by `load_weights`."""


def slots_of(kind):
    """(suffixes of tables, suffixes of other variables) for a kind of optimizer."""
    return (SUFFIXES[kind.removeprefix('own ')],
            [] if kind.startswith('own') else DENSE_SUFFIXES[kind])


def tensors(kind, strategy='mod', hosts=2):
    """The checkpoint of TF1 with the tables of `tfrs_models`."""
    of_tables, of_dense = slots_of(kind)
    found = {'global_step': np.int64(tf1_tables.STEP)}
    for name, rows in models.ROWS.items():
        for tensor in (name, *(f'{name}/{suffix}' for suffix in of_tables)):
            found[tensor] = tf1_tables.slices(tensor, rows, strategy, hosts)
    for name, rows in DENSE.items():
        for tensor in (name, *(f'{name}/{suffix}' for suffix in of_dense)):
            value = tf1_tables.slices(tensor, rows, width=1)
            found[tensor] = value[:, 0] if rows == 1 else value
    return found


def values(kind):
    """The same as `tfrs_models.values_of` has it."""
    of_tables, _ = slots_of(kind)
    found = {name: tf1_tables.value_of(name, range(rows), 1) for name, rows in DENSE.items()}
    found['dense/bias'] = found['dense/bias'][:, 0]
    for name, rows in models.ROWS.items():
        found[name] = tf1_tables.value_of(name, range(rows))
        for suffix in of_tables:
            found[f'{name}/{tf1_tables.SLOTS[suffix]}'] = tf1_tables.value_of(
                f'{name}/{suffix}', range(rows))
    return found


def require_values(case, built, strategy):
    """A new model has all that the checkpoint of a folder holds; returns it and its optimizer."""
    kind, form = case.name.split(', ')
    path, = (str(one.with_suffix('')) for one in case.glob('to/*.index'))
    with strategy.scope():
        model, optimizer = models.make(kind, form != 'subclassed')
    if built:
        models.build(model, optimizer, strategy)
    if form == 'weights':
        model.load_weights(path)
    elif form == 'model':
        tf.train.Checkpoint(model=model).restore(path)
    else:
        tf.train.Checkpoint(model=model, optimizer=optimizer).restore(path)
    models.build(model, optimizer, strategy)
    found, wanted = models.values_of(model), values(kind)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, name)
    dense = model.get_layer('dense')
    for suffix, slot in zip(slots_of(kind)[1], sorted(optimizer.get_slot_names())):
        np.testing.assert_array_equal(optimizer.get_slot(dense.kernel, slot), tf1_tables.value_of(
            f'dense/kernel/{suffix}', range(4), 1), slot)
    assert optimizer.iterations.numpy() == tf1_tables.STEP
    return model, optimizer


def main(folder):
    """Loads each case twice; the second model is trained and saved in `trained`."""
    strategy = tf.distribute.get_strategy()
    for case in sorted(pathlib.Path(folder).iterdir()):
        for built in True, False:
            model, optimizer = require_values(case, built, strategy)
        models.trainer(model, optimizer, strategy)(0)
        trained = case / 'trained'
        trained.mkdir()
        models.save(trained, model, optimizer)
    assert 'estimator_tpu_embedding' not in sys.modules


if __name__ == '__main__':
    main(sys.argv[1])
