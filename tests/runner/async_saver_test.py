"""`AsyncCheckpointSaverHook`: what it saves, and that a job with tables can go on from there."""

import json
import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.parts import soak_except

from estimator_tpu_embedding.runner.checkpoint_hooks import AsyncCheckpointSaverHook

pytestmark = pytest.mark.no_rerun
STEPS = [{'f': np.array([1, 2, 3, 1]), 'label': np.ones(4, np.float32)}] * 20


class Saves(tf.train.CheckpointSaverListener):
    """Writes down at which steps there was a save."""

    def __init__(self):
        self.steps = []

    def after_save(self, session, global_step_value):
        self.steps.append(int(global_step_value))


def make(directory, strategy='mod', hook=True, listeners=()):
    columns = [jobs.embedding('f')]
    hooks = [AsyncCheckpointSaverHook(str(directory), save_steps=2,
                                      listeners=listeners)] if hook else []

    def model_fn(features, labels, mode, params):
        return jobs.linear_model_fn(columns)(features, labels, mode, params)._replace(
            training_hooks=hooks)

    return jobs.estimator(model_fn, columns, jobs.run_config(directory, 2, 2), batch_size=4,
                          strategy=strategy)


@pytest.mark.parametrize('strategy', soak_except(['div', 'mod'], 1))
def test_its_checkpoints_hold_the_tables_as_those_of_the_estimator_do(tmp_path, strategy):
    for directory, hook in ((tmp_path / 'ours', False), (tmp_path / 'hook', True)):
        estimator = make(directory, strategy, hook)
        estimator.train(jobs.input_fn_of(STEPS), steps=4)
        estimator.train(jobs.input_fn_of(STEPS), steps=2)  # Restored from what it saved.
    tables = [{key: tf.train.load_variable(str(tmp_path / name), key)
               for key, _ in tf.train.list_variables(str(tmp_path / name))}
              for name in ('ours', 'hook')]
    assert tables[0].keys() == tables[1].keys()
    for key in tables[0]:
        np.testing.assert_array_equal(tables[0][key], tables[1][key], err_msg=key)
    manifest, = (tmp_path / 'hook').glob('*-6.*.json')
    assert json.loads(manifest.read_text())['step'] == 6


def test_it_saves_at_loop_ends_and_tells_listeners(tmp_path, caplog):
    saves, given = Saves(), Saves()
    with caplog.at_level(logging.INFO, 'tensorflow'):
        make(tmp_path, listeners=[saves]).train(jobs.input_fn_of(STEPS), steps=5,
                                                saving_listeners=[given])
    assert saves.steps == given.steps == [0, 2, 4, 5]
    assert 'Bypassing TPUEstimator hook' in caplog.text


def test_in_a_handwritten_loop_it_saves_with_the_saver_that_it_is_given_or_finds(tmp_path):
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        train, only_step = tf.assign_add(step, 1), tf.train.Saver([step])
        value = tf.get_variable('v', [], initializer=tf.ones_initializer())
        del value
        scaffold = tf.train.Scaffold()
        hooks = [AsyncCheckpointSaverHook(str(tmp_path / 'given'), save_steps=2, saver=only_step),
                 AsyncCheckpointSaverHook(str(tmp_path / 'scaffold'), save_steps=3,
                                          scaffold=scaffold),
                 AsyncCheckpointSaverHook(str(tmp_path / 'found'), save_secs=900)]
        with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold), hooks) as session:
            for _ in range(5):
                session.run(train)
    for name, steps, variables in (('given', [0, 2, 4, 5], ['global_step']),
                                   ('scaffold', [0, 3, 5], ['global_step', 'v']),
                                   ('found', [0, 5], ['global_step', 'v'])):
        assert sorted(int(path.stem.split('-')[1])
                      for path in (tmp_path / name).glob('*.index')) == steps
        assert [key for key, _ in tf.train.list_variables(str(tmp_path / name))] == variables
