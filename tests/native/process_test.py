"""The resources of native kernels: memory, large pages, and no time when idle."""

import contextlib
import mmap
import pathlib
import re
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


def large_pages():
    """Bytes of this process in large pages."""
    text = pathlib.Path('/proc/self/smaps').read_text()
    return 1024 * sum(map(int, re.findall(r'AnonHugePages: +(\d+) kB', text)))


def granted_large_pages(size):
    """Bytes in large pages of a piece of memory that asks for them as tables do.

    There are none where they are off for this process, or where the memory of the system is in
    too many pieces.
    """
    before = large_pages()
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as piece:
        with contextlib.suppress(OSError):  # of a system that has no large pages
            piece.madvise(mmap.MADV_HUGEPAGE)
        for place in range(0, size, mmap.PAGESIZE):
            piece[place] = 1
        return large_pages() - before


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


def test_tables_are_in_large_pages(graph):
    size = 64 * MIB
    granted = granted_large_pages(size)
    if granted < size // 2:
        pytest.skip(f'the system gives large pages for {granted} of {size} bytes only')
    rows, before = size // 512, large_pages()  # Half of it is for the slot of Adagrad.
    operations = Operations(table_rows=[5, rows], table_widths=[3, 64], num_hosts=1)
    grouped = operations.group([[], [0] * rows, []], [[], np.arange(rows), []], [[]])
    operations.update([grouped], [np.ones([4, width], np.float32) for width in (3, 64, 64)])
    found = large_pages() - before
    operations.session.close()
    assert found >= granted // 2  # The kernel may lack some of them by now.


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
