"""Section 14 of the runner's specification: warm starts with and without a TPU, and resuming."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.parts import soak_except

from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.errors import CorruptCheckpointError

TABLE = 'dense_features/f_embedding/embedding_weights'
nightly = _legacy.load()


def input_fn(params):
    return tf.data.Dataset.from_tensors(({'f': [1, 2, 3, 1]}, np.ones(4, np.float32))).repeat()


def make(directory, use_tpu=True, cores=1, **kwargs):
    columns = [jobs.embedding('f')]
    return jobs.estimator(
        jobs.linear_model_fn(columns, None if use_tpu else (
            lambda: tf.train.GradientDescentOptimizer(.1))), columns,
        jobs.run_config(directory, 1, cores), batch_size=4, use_tpu=use_tpu, **kwargs)


def start_of(estimator):
    """The table and the weight before the first step of a training."""
    seen = []

    class Look(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            names = {variable.op.name.replace('/part_0', ''): variable
                     for variable in session.graph.get_collection('variables')}
            seen[:] = session.run([names[TABLE], names['w/kernel'], names['global_step']])

    estimator.train(input_fn, steps=1, hooks=[Look()])
    return seen


@pytest.mark.parametrize('there, here', [(True, False), (False, True)])
@pytest.mark.parametrize('kind', soak_except([
    'directory', 'checkpoint', 'export', 'settings'], 2))
def test_what_was_trained_with_and_without_a_tpu_starts_the_other(tmp_path, there, here, kind):
    source = make(tmp_path / 'there', there)
    source.train(input_fn, steps=3)
    warm = {'directory': lambda: str(tmp_path / 'there'),
            'checkpoint': lambda: str(tmp_path / 'there' / 'model.ckpt-3'),
            'export': lambda: source.export_saved_model(
                str(tmp_path / 'export'), jobs.serving).decode(),
            'settings': lambda: nightly.WarmStartSettings(
                str(tmp_path / 'there'), vars_to_warm_start='.*embedding.*')}[kind]()
    table, weight, step = start_of(make(tmp_path / 'here', here, warm_start_from=warm))
    np.testing.assert_array_equal(table, source.get_variable_value(TABLE))
    trained = source.get_variable_value('w/kernel')
    assert step == 0 and (trained != 1.).all()
    np.testing.assert_array_equal(weight, np.ones([2, 1]) if kind == 'settings' else trained)


@pytest.mark.parametrize('use_tpu', [True, False])
def test_c20_a_warm_start_takes_one_checkpoint_which_is_whole(tmp_path, use_tpu):
    source = make(tmp_path / 'there')
    source.train(input_fn, steps=3)
    want = source.get_variable_value(TABLE)
    pointer = tmp_path / 'there' / 'checkpoint'
    pointer.write_text(pointer.read_text().replace('model.ckpt-3', 'model.ckpt-0'))
    table, _, _ = start_of(make(tmp_path / 'new', use_tpu, warm_start_from=str(
        tmp_path / 'there')))
    np.testing.assert_array_equal(table, want)
    data, = (tmp_path / 'there').glob('model.ckpt-3.data*')
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(CorruptCheckpointError, match='E618 checkpoint model.ckpt-3'):
        make(tmp_path / 'other', use_tpu, warm_start_from=str(
            tmp_path / 'there' / 'model.ckpt-3')).train(input_fn, steps=1)


def test_where_tables_are_trained_and_evaluated_is_not_where_they_start(tmp_path):
    make(tmp_path / 'there').train(input_fn, steps=3)
    estimator = make(tmp_path / 'here', warm_start_from=str(tmp_path / 'there'))
    estimator.train(input_fn, steps=1)
    want = estimator.evaluate(input_fn, steps=1)
    assert make(tmp_path / 'here', warm_start_from=str(tmp_path / 'there')).evaluate(
        input_fn, steps=1) == want and want['global_step'] == 1
