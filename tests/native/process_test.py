"""What the native kernels take of the machine: memory, large pages, and time when idle."""

import pathlib
import re
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import memory, native_ops
from harness.native_ops import Operations

from estimator_tpu_embedding.native import library

pytestmark = pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())
LARGE_PAGES = pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled')
MIB = 2**20


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def large_pages():
    """Bytes of this process in large pages."""
    text = pathlib.Path('/proc/self/smaps').read_text()
    return 1024 * sum(map(int, re.findall(r'AnonHugePages: +(\d+) kB', text)))


def test_ten_thousand_steps_leave_no_memory_behind(graph):
    operations = Operations()
    given, words = operations.library, tf.placeholder(tf.int32, [None])
    samples, ids = tf.constant([0, 0, 3]), tf.constant([4, 0, 2], tf.int64)
    step = operations.session.make_callable(
        [given.ete_group(engine=operations.handle, samples=[samples] * 3, ids=[ids] * 3,
                         weights=[[1., 2., .5]]),
         given.ete_lookup(engine=operations.handle, grouped=words, F=3),
         given.ete_update(engine=operations.handle, grouped=[words], rates=[.1, .1],
                          gradients=[np.ones_like(zeros) for zeros in native_ops.zeros()])],
        [words])
    grouped = operations.some_grouped()
    for _ in range(1000):
        grouped = step(grouped)[0]
    before = memory.rss()
    for _ in range(10_000):
        grouped = step(grouped)[0]
    assert memory.rss() - before < 2 * MIB  # 200 bytes per step
    operations.session.close()


@pytest.mark.skipif(not LARGE_PAGES.exists() or '[never]' in LARGE_PAGES.read_text(),
                    reason='this system has no transparent large pages')
def test_tables_are_in_large_pages(graph):
    rows, before = 2**18, large_pages()
    operations = Operations(table_rows=[5, rows], table_widths=[3, 64], num_hosts=1)  # 64 MiB
    values, given = tf.ones([rows, 64]), operations.library
    operations.run(given.ete_view(engine=operations.handle, value=values, part=2))
    operations.run(given.ete_take(engine=operations.handle, value=values, part=2))
    found = large_pages() - before
    operations.session.close()
    assert found >= rows * 64 * 4 // 2  # The kernel may lack some of them.


def test_an_idle_engine_takes_no_time(graph):
    operations = Operations(threads=4)
    operations.lookup(operations.some_grouped())
    began = time.process_time()
    time.sleep(.5)
    assert time.process_time() - began < .1
    operations.session.close()
