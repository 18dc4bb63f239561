"""Threads give the same results, bit for bit, however many they are; and work side by side."""

import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.native_ops import Operations
from harness.parts import soak_except

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.native import library

pytestmark = [pytest.mark.no_rerun,
              pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())]
SAMPLES = 24000
COUNTS = (70000, 30000)  # From 65,536 ids on, one table is sorted by all threads.


def plan(accumulate):
    """A large table with weighted and with plain ids, and one of a few rows that all ids share."""
    return resolve(
        [TableSpec(name='large', vocabulary_size=50000, dimension=8, combiner='mean'),
         TableSpec(name='small', vocabulary_size=3, dimension=5, combiner='sqrtn')],
        [FeatureSpec(name='a', table='large', weight_feature='w'),
         FeatureSpec(name='b', table='large'), FeatureSpec(name='c', table='small')],
        Topology(num_hosts=3), batch_size=3 * SAMPLES, strategy='mod',
        optimizer=Adagrad(learning_rate=.1, accumulate=accumulate))


def results(threads, accumulate):
    """A grouped batch, and what is looked up in rows of zeros that two updates have changed."""
    generator = np.random.default_rng(21)
    counts = (*COUNTS, COUNTS[1])
    samples = [np.sort(generator.integers(0, SAMPLES, count)) for count in counts]
    ids = [generator.integers(0, rows, count) for rows, count in zip((50000, 50000, 3), counts)]
    gradients = [generator.normal(size=(SAMPLES, width)).astype(np.float32)
                 for width in (8, 8, 5)]
    with tf.Graph().as_default():
        operations = Operations(plan(accumulate), threads=threads)
        grouped = operations.group(samples, ids, [generator.uniform(.5, 2, counts[0])])
        for sign in (1, -.5):
            operations.update([grouped] * 3, [sign * one for one in gradients] * 3)
        found = operations.lookup(grouped)
        operations.session.close()
    return [grouped, *found]


@pytest.mark.parametrize('accumulate', soak_except([True, False], 0))
def test_large_batches_give_the_same_bits_on_1_2_and_5_threads(accumulate):
    one, *others = [results(threads, accumulate) for threads in (1, 2, 5)]
    assert all(activations.any() for activations in one[1:])
    for other in others:
        for expected, found in zip(one, other):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason='there is one CPU')
def test_a_worker_keeps_off_the_cpu_of_its_caller_and_to_those_of_the_process():
    usable, before = os.sched_getaffinity(0), set(os.listdir('/proc/self/task'))
    ids = np.arange(8000) % 7  # Enough to wake the worker up.
    with tf.Graph().as_default():
        operations = Operations(threads=2)
        operations.group([0 * ids, np.sort(ids % 4), []], [ids % 5, ids, []],
                         [np.ones(len(ids))])
        cpus = [os.sched_getaffinity(int(task))
                for task in set(os.listdir('/proc/self/task')) - before]
        operations.session.close()
    assert sum(usable - own != set() for own in cpus) == 1
    assert all(own <= usable and len(usable - own) <= 1 for own in cpus)
