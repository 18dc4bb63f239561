"""The resources of native kernels: no memory that stays, and no time when idle."""

import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import memory, native_ops
from harness.native_ops import Operations

from estimator_tpu_embedding.native import library

pytestmark = [pytest.mark.serial,  # Memory and time of this process.
              pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())]
MIB = 2**20


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_ten_thousand_steps_leave_no_memory_behind(graph):
    operations = Operations()
    given, words = operations.library, tf.placeholder(tf.int32, [None])
    samples, ids = tf.constant([0, 0, 3]), tf.constant([4, 0, 2], tf.int64)
    step = operations.session.make_callable(
        [given.ete_group(engine=operations.handle, samples=[samples] * 3, ids=[ids] * 3,
                         weights=[[1., 2., .5]]),
         given.ete_lookup(engine=operations.handle, grouped=words, handles=[], F=3),
         given.ete_update(engine=operations.handle, grouped=[words], rates=[.1, .1], handles=[],
                          gradients=[np.ones_like(zeros) for zeros in native_ops.zeros()])],
        [words])
    grouped = operations.some_grouped()
    for _ in range(1000):
        grouped = step(grouped)[0]

    def growth():
        before = memory.rss()
        for _ in range(10_000):
            step(grouped)
        return memory.rss() - before

    # 200 bytes per step, each time if there is a leak: TensorFlow may take memory once.
    assert any(growth() < 2 * MIB for _ in range(3))
    operations.session.close()


def test_an_idle_engine_takes_no_time(graph):
    operations = Operations(threads=4)
    operations.lookup(operations.some_grouped())

    def seconds():
        began = time.process_time()
        time.sleep(.5)
        return time.process_time() - began

    # Threads of TensorFlow may have something to do at first; one that spins has it always.
    assert any(seconds() < .1 for _ in range(60))
    operations.session.close()
