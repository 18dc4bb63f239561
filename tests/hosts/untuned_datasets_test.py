"""Datasets without tuners: which ones, and what stays as it was."""

import pathlib
import re

import pytest
import tensorflow as tf
from harness import processes

from estimator_tpu_embedding.hosts.untuned_datasets import without_tuner

TUNER = {'TF_CPP_VMODULE': 'model=2', 'TF_CPP_MIN_LOG_LEVEL': '0'}
"""TensorFlow's tuner then reports each of its looks at a dataset; the first is its first act."""

SCRIPT = '''
import sys
sys.path.insert(0, sys.argv[1])
from harness import jobs
import numpy as np
import tensorflow.compat.v1 as tf
import estimator_tpu_embedding as ete
from estimator_tpu_embedding.runner.checkpoint_hooks import CheckpointInputPipelineHook
columns = [jobs.embedding('f')]
made = jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
    sys.argv[2], save_checkpoints_steps=2))
batch = {'f': np.arange(8), 'label': np.ones(8, np.float32)}
hooks = [CheckpointInputPipelineHook(made)] if sys.argv[3] == 'hook' else []
made.train(jobs.input_fn_of([batch] * 4), steps=4, hooks=hooks)
made.evaluate(jobs.input_fn_of([batch] * 4), steps=4)
'''


@pytest.mark.parametrize('hook', ['hook', 'none'])
def test_no_thread_tunes_the_input_of_a_job_unless_its_states_are_saved(tmp_path, hook):
    """The names of states that TensorFlow and earlier versions have saved are those of tuning."""
    path = tmp_path / 'script.py'
    path.write_text(SCRIPT)
    ended = processes.run_python(
        path, pathlib.Path(__file__).parents[1], tmp_path / 'm', hook, TF_USE_LEGACY_KERAS='1',
        **TUNER)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert bool(re.findall(r'model\.cc.*', ended.stderr)) is (hook == 'hook')


def test_options_that_speak_of_tuning_stay():
    dataset, options = tf.data.Dataset.range(3), tf.data.Options()
    options.autotune.enabled = True
    assert without_tuner(dataset).options().autotune.enabled is False
    assert without_tuner(dataset.with_options(options)).options().autotune.enabled


def test_plain_calls_of_map_are_made_parallel_where_options_allow_it():
    def kinds(dataset):
        with tf.Graph().as_default() as graph:
            without_tuner(dataset())
            return {operation.type for operation in graph.get_operations()}

    def plain():
        return tf.data.Dataset.range(3).map(lambda number: number + 1)

    def sequential():
        options = tf.data.Options()
        options.experimental_optimization.map_parallelization = False
        return plain().with_options(options)

    assert 'OptimizeDatasetV2' in kinds(plain)
    assert 'OptimizeDatasetV2' not in kinds(sequential)
