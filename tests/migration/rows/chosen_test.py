"""Which tensors of a checkpoint are tables that can be exported, and which are their slots."""

import numpy as np
import pytest
import tensorflow as tf
from harness import forged

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.manifest import StoredTable
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.migration.rows import chosen

KEY = '/.ATTRIBUTES/VARIABLE_VALUE'
ROWS = np.ones([4, 2], 'f4')


def candidates(tmp_path, tensors, assume=()):
    """The tables among tensors without a manifest; those of `assume` have a known order."""
    bundle = Bundle.open(forged.write(tmp_path / 'model.ckpt-1', tensors))
    tables = {name: StoredTable(rows=4, width=2, strategy='mod', hosts=2, slots=())
              for name in assume}
    return chosen.candidates(bundle, tables, None)


def test_tables_and_slots_of_a_real_checkpoint_of_tf2_are_found(tmp_path):
    api = tf.tpu.experimental.embedding
    tables = [api.TableConfig(4, 2, name=name) for name in ('user', 'a/b', 'x.y')]
    embedding = api.TPUEmbeddingForServing(
        [api.FeatureConfig(table) for table in tables], api.Adam(.1))
    embedding.build()
    prefix = tf.train.Checkpoint(
        embedding=embedding, kernel=tf.Variable(tf.ones([4, 2])), bias=tf.Variable([1., 2.])
    ).save(str(tmp_path / 'ckpt'))
    found = chosen.candidates(Bundle.open(prefix), {}, None)
    assert {name.removesuffix(KEY): [slot for slot, _ in one.slots]
            for name, one in found.items()} == {
        'kernel': [], **{f'embedding/{name}': ['momenta', 'velocities']
                         for name in ('user', 'a.Sb', 'x..y')}}
    assert all(one.partition is None for one in found.values())
    one, = chosen.chosen(['user'], found, with_slots=True)
    assert [tensor for _, tensor in one.tensors] == [
        f'embedding/user{slot}{KEY}' for slot in ('', '.Smomenta', '.Svelocities')]
    with pytest.raises(ConfigError, match='E662 --table: it must say which variables are tables'):
        chosen.chosen([], found, with_slots=True)


def test_slots_of_keras_belong_to_their_tables(tmp_path):
    found = candidates(tmp_path, {f'e/t{KEY}': ROWS, f'e/t/.OPTIMIZER_SLOT/opt/m{KEY}': ROWS,
                                  f'e/t/.OPTIMIZER_SLOT/opt/n{KEY}': ROWS[:1]})
    assert {name: one.slots for name, one in found.items()} == {
        f'e/t{KEY}': [('m', f'e/t/.OPTIMIZER_SLOT/opt/m{KEY}')]}


def test_slots_of_tf1_are_found_by_their_names_and_are_no_tables(tmp_path):
    tensors = {'a/t': ROWS, 'a/t/Adam/m': ROWS, 'a/t/Adam/v': ROWS, 'a/t/mean': ROWS,
               'b/t': ROWS, 'bias': ROWS[0]}
    found = candidates(tmp_path, tensors, ['a/t', 'a/t/Adam/m', 'a/t/Adam/v', 'a/t/mean', 'b/t'])
    assert {name: [slot for slot, _ in one.slots] for name, one in found.items()} == {
        'a/t': ['Adam/m', 'Adam/v'], 'a/t/mean': [], 'b/t': []}
    assert [one.name for one in chosen.chosen(['a/t'], found, False)] == ['a/t']
    for name, said in (('t', 'got several.  There: "a/t", "b/t".'), ('x', 'none of that name')):
        with pytest.raises(ConfigError, match='E662 --table') as caught:
            chosen.chosen([name], found, False)
        assert said in str(caught.value)
