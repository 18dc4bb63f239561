"""Native kernels and stock operations in whole jobs: same numbers, same checkpoints."""

import concurrent.futures
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, jobs

from estimator_tpu_embedding.runner import progress

TABLE = 'dense_features/{}_embedding/embedding_weights'
NAMES = [TABLE.format('f'), TABLE.format('f') + '/Adagrad', TABLE.format('g'),
         TABLE.format('g') + '/Adagrad', 'w/kernel']
pytestmark = [pytest.mark.no_rerun, graphs.needs_native]


def steps_of(count, seed):
    generator = np.random.default_rng(seed)
    return [{'f': generator.integers(0, 10, [8, 3]), 'g': generator.integers(0, 7, [8, 1]),
             'label': generator.normal(size=8).astype(np.float32)} for _ in range(count)]


FIRST, SECOND = steps_of(4, 1), steps_of(3, 2)


def make(directory, kernels, **kwargs):
    columns = [jobs.embedding('f', 10, 3, 'mean'), jobs.embedding('g', 7, 2, 'sqrtn')]
    return jobs.estimator(
        jobs.linear_model_fn(columns), columns, jobs.run_config(
            directory, 2, 2, kernels=kernels, **kwargs), strategy='mod')


def stored(directory):
    return {name: tf.train.load_variable(str(directory), name) for name in NAMES}


def assert_equal(one, other):
    for name in NAMES:
        np.testing.assert_allclose(one[name], other[name], rtol=2e-6, atol=2e-6, err_msg=name)


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """By kernels where a job has trained on all of `FIRST`, with a checkpoint; to be read only."""
    directories = {kernels: tmp_path_factory.mktemp(kernels) for kernels in ('native', 'stock')}
    for kernels, directory in directories.items():
        make(directory, kernels).train(jobs.input_fn_of(FIRST), max_steps=4)
        assert progress.reports()[-1].kernels == kernels
        assert f', {kernels} kernels; ' in progress.reports()[-1].last_line()
    return directories


def test_both_train_the_same_tables(trained):
    assert_equal(stored(trained['native']), stored(trained['stock']))


def test_either_goes_on_where_the_other_ended(trained, tmp_path):
    for kernels, other in (('native', 'stock'), ('stock', 'native')):
        copy = shutil.copytree(trained[other], tmp_path / kernels)
        make(copy, kernels).train(jobs.input_fn_of(SECOND), steps=3)
        assert tf.train.load_variable(str(copy), 'global_step') == 7
    assert_equal(stored(tmp_path / 'native'), stored(tmp_path / 'stock'))


def test_estimators_that_train_side_by_side_have_rows_and_threads_of_their_own(trained, tmp_path):
    """Each gives, bit for bit, what one that was alone on all cores gave."""
    def train(threads):
        make(tmp_path / str(threads), 'native', kernel_threads=threads).train(
            jobs.input_fn_of(FIRST), max_steps=4)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(train, (1, 3)))  # Raises what a job did.
    alone = stored(trained['native'])
    for threads in (1, 3):
        for name, values in stored(tmp_path / str(threads)).items():
            np.testing.assert_array_equal(values, alone[name], name)
