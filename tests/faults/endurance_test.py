"""Rows R04 to R06: what lasts long, or goes wrong in every step, costs no more for that."""

import gc
import logging
import os
import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs, memory
from harness.parts import soak_except

from estimator_tpu_embedding.hosts.backend import QUEUE_CAPACITY
from estimator_tpu_embedding.runner import progress

COLUMNS = [jobs.embedding('f')]
BATCH = 4
MEGABYTE = 2**20


def estimator(directory, **kwargs):
    return jobs.estimator(jobs.linear_model_fn(COLUMNS), COLUMNS,
                          jobs.run_config(directory, **kwargs), batch_size=BATCH)


class Slow(tf.train.SessionRunHook):
    """A step that takes its time; notes how many batches wait, and the memory."""

    def __init__(self, seconds, produced):
        self.waiting, self.rss = [], []
        self._seconds, self._produced, self._steps = seconds, produced, 0

    def after_run(self, run_context, run_values):
        time.sleep(self._seconds)
        self._steps += 1
        self.waiting.append(len(self._produced) // BATCH - self._steps)
        self.rss.append(memory.rss())


def produce_faster(directory, steps, seconds):
    produced = []

    def generate():
        while True:
            produced.append(None)
            time.sleep(seconds / 10 / BATCH)
            yield 1, np.ones(250_000, np.float32)  # A megabyte per sample.

    def input_fn(params):
        dataset = tf.data.Dataset.from_generator(
            generate, (tf.int64, tf.float32), ([], [250_000])).batch(BATCH, drop_remainder=True)
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        return dataset.map(lambda ids, values: (
            {'f': ids}, tf.reduce_mean(values, 1))).with_options(options)

    slow = Slow(seconds, produced)
    estimator(directory, iterations=1).train(input_fn, max_steps=steps, hooks=[slow])
    return slow


@pytest.mark.parametrize('steps, seconds', soak_except([(20, .05), (600, .1)], 0))
def test_r04_a_producer_that_is_ten_times_as_fast_waits_and_takes_no_memory(
        tmp_path, steps, seconds):
    slow = produce_faster(tmp_path, steps, seconds)
    # What queues hold, one that the generator is asked for, and one that TensorFlow has begun.
    assert max(slow.waiting) <= QUEUE_CAPACITY + 2
    # 5,400 batches of 4 MB would be 21 GB.
    assert steps < 100 or max(slow.rss[100:]) - slow.rss[100] < 100 * MEGABYTE


def evaluations(directory, count, first):
    """(files, threads, memory) after `first` evaluations, and what they grew by after `count`."""
    rows = {'f': np.array([1, 2, 3, 4]), 'label': np.ones(BATCH, np.float32)}
    made = estimator(directory)
    made.train(jobs.input_fn_of([rows]), max_steps=1)

    def state():
        gc.collect()
        return np.array([len(os.listdir('/proc/self/fd')), threading.active_count(),
                         memory.rss()])

    for number in range(count):
        assert made.evaluate(jobs.input_fn_of([rows]), steps=1)['global_step'] == 1
        if number == first:
            before = state()
    end = time.monotonic() + 150  # What ends late does not end at once.
    while max((grown := state() - before)[:2]) > 0 and time.monotonic() < end:
        time.sleep(.05)
    return grown


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_r05_a_thousand_evaluations_leave_nothing(tmp_path):
    files, threads, rss = evaluations(tmp_path, 1000, 200)
    assert files <= 0 and threads <= 0
    assert rss < 100 * MEGABYTE  # An eighth of a megabyte for each of 800.


def test_r06_bad_ids_in_every_step_are_counted_exactly_and_not_logged_one_by_one(
        tmp_path, caplog):
    rows = {'f': np.array([1, 10, -1, 2]), 'label': np.ones(BATCH, np.float32)}
    lines = []
    for steps in (5, 50):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            estimator(tmp_path / str(steps), iterations=1, id_policy='drop').train(
                jobs.input_fn_of([rows] * steps), max_steps=steps)
        report = progress.reports()[-1]
        counts = report.counts['f']
        # Of the four ids of a step two are looked up, and two are outside of [0, 10).
        assert (counts.seen, counts.out_of_range) == (2 * steps, 2 * steps)
        assert f'out of range: f {2 * steps}' in report.last_line()
        lines.append([record for record in caplog.records if record.levelno >= logging.WARNING])
    assert len(lines[1]) <= len(lines[0])
