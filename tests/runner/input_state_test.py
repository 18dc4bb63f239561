"""`CheckpointInputPipelineHook`: which samples a resumed training sees."""

import logging
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.errors import CorruptCheckpointError
from estimator_tpu_embedding.runner.checkpoint_hooks import CheckpointInputPipelineHook

# The label of the first sample of a step is the number of the step.
STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.full(4, number, np.float32)}
         for number in range(12)]


class Seen(tf.train.SessionRunHook):
    """Writes down the labels of every step, and fails at one of them."""

    def __init__(self, labels, fail_at=None):
        self.labels, self._fail_at = labels, fail_at

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection('seen')[0])

    def after_run(self, run_context, run_values):
        self.labels.append(float(run_values.results))
        if self.labels[-1] == self._fail_at:
            raise ValueError('the job dies here')


def make(directory, iterations=1, hosts=2, cores=2, ahead=False, **kwargs):
    columns = [jobs.embedding('f')]

    def model_fn(features, labels, mode, params):
        tf.add_to_collection('seen', labels[0])
        return jobs.linear_model_fn(columns)(features, labels, mode, params)

    return ete.TPUEstimator(
        model_fn, config=jobs.run_config(directory, hosts, cores, iterations, **{
            'save_checkpoints_steps': 2, **kwargs}), train_batch_size=4,
        embedding_config_spec=ete.EmbeddingConfigSpec(
            columns, ete.StochasticGradientDescentParameters(0.01),
            pipeline_execution_with_tensor_core=ahead))


def seen_by(estimator, max_steps, fail_at=None, hooked=True, input_fn=jobs.input_fn_of(STEPS)):
    seen = Seen([], fail_at)
    hooks = [CheckpointInputPipelineHook(estimator)] if hooked else []
    try:
        estimator.train(input_fn, max_steps=max_steps, hooks=[*hooks, seen])
    except ValueError as error:
        assert str(error) == 'the job dies here'
    return seen.labels


def test_training_goes_on_with_the_sample_after_the_last_one(tmp_path):
    assert seen_by(make(tmp_path), 3) == [0, 1, 2]
    assert seen_by(make(tmp_path), 7) == [3, 4, 5, 6]
    assert sorted(path.name for path in tmp_path.glob('input.ckpt*.index')) == [
        f'input.ckpt-{step}.index' for step in (0, 2, 3, 5, 7)]
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-7')


def test_c16_a_pointer_of_states_leads_to_no_file_of_others(tmp_path):
    mine, other = make(tmp_path / 'mine'), tmp_path / 'other'
    assert seen_by(mine, 3) == [0, 1, 2]
    assert seen_by(make(other), 3) == [0, 1, 2]
    before = {path.name: path.read_bytes() for path in other.glob('input.ckpt*')}
    names = [f'{other}/input.ckpt-{step}' for step in (0, 2, 3)] + ['../other/input.ckpt-2']
    (tmp_path / 'mine' / 'checkpoint_input').write_text(
        f'model_checkpoint_path: "{names[0]}"\n'
        + ''.join(f'all_model_checkpoint_paths: "{name}"\n' for name in names))
    assert seen_by(make(tmp_path / 'mine', keep_checkpoint_max=1), 12) == list(range(3, 12))
    assert {path.name: path.read_bytes() for path in other.glob('input.ckpt*')} == before


def test_c17_pipes_in_the_place_of_states_are_not_waited_for(tmp_path):
    assert seen_by(make(tmp_path), 3) == [0, 1, 2]
    (tmp_path / 'checkpoint_input').unlink()
    os.mkfifo(tmp_path / 'checkpoint_input')
    assert seen_by(make(tmp_path), 5) == [3, 4]
    for name in ('input.ckpt-5.index', 'input.ckpt-5.data-00000-of-00001'):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name)
        with pytest.raises(CorruptCheckpointError, match=f'E627 .*{name} .*; got a pipe'):
            make(tmp_path).train(jobs.input_fn_of(STEPS), max_steps=7,
                                 hooks=[CheckpointInputPipelineHook(make(tmp_path))])
        (tmp_path / name).unlink()
        (tmp_path / name).write_bytes(content)


def test_i20_without_the_hook_it_begins_anew(tmp_path):
    assert seen_by(make(tmp_path), 3) == [0, 1, 2]
    assert seen_by(make(tmp_path), 5, hooked=False) == [0, 1]


def test_states_of_steps_that_the_model_does_not_have_are_told(tmp_path, caplog):
    assert seen_by(make(tmp_path, iterations=2), 4) == [1, 3]
    for path in [*tmp_path.glob('model.ckpt-4*'), tmp_path / 'checkpoint']:
        path.unlink()
    state = tmp_path / 'checkpoint'
    state.write_text('model_checkpoint_path: "model.ckpt-2"\n')
    assert seen_by(make(tmp_path, iterations=2), 4) == [3]  # that of step 2 is there
    for path in [*tmp_path.glob('input.ckpt-2*'), *tmp_path.glob('model.ckpt-4*')]:
        path.unlink()
    state.write_text('model_checkpoint_path: "model.ckpt-2"\n')
    (tmp_path / 'checkpoint_input').write_text(
        'model_checkpoint_path: "input.ckpt-4"\nall_model_checkpoint_paths: "input.ckpt-4"\n')
    with caplog.at_level(logging.WARNING, 'tensorflow'):
        assert seen_by(make(tmp_path, iterations=2), 4) == [5]
    assert 'The model is at step 2, but the newest state of its input is' in caplog.text


def test_old_states_are_deleted_like_checkpoints_over_several_trainings_too(tmp_path):
    for steps in (3, 6):
        seen_by(make(tmp_path, keep_checkpoint_max=2), steps)
    for name, steps in (('input', [3, 5, 6]), ('model', [5, 6])):
        assert sorted(path.stem for path in tmp_path.glob(f'{name}.ckpt*.index')) == [
            f'{name}.ckpt-{step}' for step in steps]
    assert sorted(path.name for path in tmp_path.glob('*.tables.json')) == [
        'model.ckpt-5.tables.json', 'model.ckpt-6.tables.json']


def test_a_plain_estimator_goes_on_too_shuffled_data_included(tmp_path):
    def input_fn():
        return tf.data.Dataset.range(100).shuffle(100, seed=1).batch(1)

    def model_fn(features, labels, mode):
        tf.add_to_collection('seen', features[0])
        step = tf.train.get_global_step()
        return _legacy.load().EstimatorSpec(
            mode, loss=tf.constant(0.), train_op=tf.assign_add(step, 1))

    def train(directory, steps):
        plain = _legacy.load().Estimator(model_fn, str(directory), _legacy.load().RunConfig(
            tf_random_seed=1, save_checkpoints_steps=3))
        seen = Seen([])
        plain.train(input_fn, steps=steps, hooks=[CheckpointInputPipelineHook(plain), seen])
        return seen.labels

    at_once = train(tmp_path / 'once', 10)
    assert len(set(at_once)) == 10
    assert train(tmp_path / 'twice', 4) + train(tmp_path / 'twice', 6) == at_once


def test_arguments_that_make_no_sense_are_errors(tmp_path):
    estimator = make(tmp_path)
    with pytest.raises(ValueError, match='Received never'):
        CheckpointInputPipelineHook(estimator, 'never')
    with pytest.raises(ValueError, match='save_checkpoints_secs or save_checkpoints_steps'):
        CheckpointInputPipelineHook(make(tmp_path, save_checkpoints_steps=None))
    with tf.Graph().as_default(), pytest.raises(ValueError, match='found no iterator'):
        CheckpointInputPipelineHook(estimator, 'warn').begin()
