"""C22 with optimizers that have slots: those of the dummies of tables stop no change of tables.

A dummy is what catches the gradients of a table; its own gradient is 0, and so are its slots.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.parts import soak_except

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy

nightly = _legacy.load()
STEPS = [{**{key: np.array([1, 2, 3, 1]) for key in 'fgh'}, 'label': np.ones(4, np.float32)}] * 9


def make(directory, keys, warm=None, **options):
    """A job with a table per key, whose dense part has an optimizer with slots."""
    columns = [jobs.embedding(key) for key in keys]

    def model_fn(features, labels, mode, params):
        """Adds up activations, so that the dense part is alike whatever tables there are."""
        net = tf.add_n([tf.keras.layers.DenseFeatures([column])(features) for column in columns])
        logits = tf.layers.dense(net, 1, name='w', kernel_initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(logits[:, 0] - 1.))
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions={'y': logits[:, 0]})
        train_op = None
        if mode == 'train':
            train_op = ete.CrossShardOptimizer(tf.train.AdamOptimizer(.1)).minimize(
                loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return jobs.estimator(
        model_fn, columns, jobs.run_config(directory, 1, 2, checkpoint=ete.CheckpointOptions(
            **options)), batch_size=4, warm_start_from=warm)


def rows_of(estimator, key):
    """The rows of the table of a key in the newest checkpoint."""
    name, = [name for name in estimator.get_variable_names()
             if name.endswith(f'{key}_embedding/embedding_weights')]
    return estimator.get_variable_value(name)


def dummies_of(estimator):
    """Of which tables there are slots of dummies."""
    return {name.split('tpu_embedding_dummy_table_variable_')[1].split('/')[0]
            for name in estimator.get_variable_names() if 'tpu_embedding_dummy' in name}


class Start(tf.train.SessionRunHook):
    """The values of all variables before the first step."""

    def after_create_session(self, session, coord):
        self.values = {variable.op.name: session.run(variable)
                       for variable in session.graph.get_collection('variables')}


def start_of(estimator):
    start = Start()
    estimator.train(jobs.input_fn_of(STEPS), steps=1, hooks=[start])
    return start.values


def part(values, key):
    value, = [value for name, value in values.items()
              if name.endswith(f'{key}_embedding/embedding_weights/part_0')]
    return value


CHANGES = {
    'renamed': ('fh', {'rename': {'g_embedding': 'h_embedding'}}),
    'dropped and new': ('fh', {'drop': ['g_embedding']}),
    'new': ('fgh', {}), 'dropped': ('f', {'drop': ['g_embedding']}),
    'swapped': ('fg', {'rename': {'g_embedding': 'f_embedding', 'f_embedding': 'g_embedding'}})}


@pytest.mark.parametrize('change', soak_except(CHANGES, 0, 1))
def test_c22_tables_change_beside_a_dense_optimizer_with_slots(tmp_path, change):
    first = make(tmp_path, 'fg')
    first.train(jobs.input_fn_of(STEPS), steps=2)
    f, g = rows_of(first, 'f'), rows_of(first, 'g')
    weight = first.get_variable_value('w/kernel')
    keys, options = CHANGES[change]
    second = make(tmp_path, keys, **options)
    before = start_of(second)
    np.testing.assert_array_equal(before['w/kernel'], weight)
    was_f, was_g = {'renamed': 'fh', 'swapped': 'gf'}.get(change, 'fg')
    np.testing.assert_array_equal(part(before, was_f), f)
    if was_g in keys:
        np.testing.assert_array_equal(part(before, was_g), g)
    assert len(dummies_of(second)) == len(keys)
    assert make(tmp_path, keys, **options).train(  # Started again.
        jobs.input_fn_of(STEPS), steps=2).get_variable_value('global_step') == 5


def test_c22_what_was_renamed_is_evaluated_predicted_and_exported(tmp_path):
    first = make(tmp_path / 'model', 'fg')
    first.train(jobs.input_fn_of(STEPS), steps=2)
    loss = first.evaluate(jobs.input_fn_of(STEPS), steps=1)['loss']
    second = make(tmp_path / 'model', 'fh', rename={'g_embedding': 'h_embedding'})
    assert second.evaluate(jobs.input_fn_of(STEPS), steps=1)['loss'] == loss
    rows = [row['y'] for row in second.predict(jobs.input_fn_of(STEPS[:1]))]
    assert rows == [row['y'] for row in first.predict(jobs.input_fn_of(STEPS[:1]))]

    def serving():
        ids = {key: tf.placeholder(tf.int64, [None], key) for key in 'fh'}
        return nightly.export.ServingInputReceiver(ids, ids)

    exported = second.export_saved_model(str(tmp_path / 'export'), serving).decode()
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ['serve'], exported).signature_def[
            'serving_default']
        got = session.run(signature.outputs['y'].name, {
            signature.inputs[key].name: [1, 2, 3, 1] for key in 'fh'})
    np.testing.assert_allclose(got, rows, rtol=1e-6)


def test_c22_a_warm_start_needs_no_slots_of_dummies(tmp_path):
    source = make(tmp_path / 'there', 'fg')
    source.train(jobs.input_fn_of(STEPS), steps=2)
    new = make(tmp_path / 'here', 'fh', warm=nightly.WarmStartSettings(
        str(tmp_path / 'there'), vars_to_warm_start=['.*'],
        var_name_to_prev_var_name={
            name.replace('g_embedding', 'h_embedding'): name
            for name in source.get_variable_names() if 'g_embedding' in name}))
    np.testing.assert_array_equal(part(start_of(new), 'h'), rows_of(source, 'g'))
