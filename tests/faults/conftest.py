"""Checks after every test of faults that no file descriptor, thread or child is leaked.

What tests of other folders left in this process may end meanwhile, so less than before is no leak.
"""

import collections
import gc
import os
import pathlib
import signal
import sys
import tempfile
import threading

import pytest
from harness import tiny as tinies
from harness.faults import Ended
from harness.waiting import until


def open_files():
    """The files and sockets that this process has open; pipes and the like are TensorFlow's."""
    found = []
    for name in os.listdir('/proc/self/fd'):
        try:
            found.append(os.readlink(f'/proc/self/fd/{name}'))
        except FileNotFoundError:
            pass  # That of the listing.
    return [path for path in found
            if path.startswith(('/', 'socket:')) and not path.startswith('/dev/')]


def threads_of_python():
    """Those that this process started. A thread of TensorFlow that once logged something in Python
    counts as a dummy for ever."""
    return {thread for thread in threading.enumerate()
            if not isinstance(thread, threading._DummyThread)}


def children():
    """The processes that this one has started and not waited for."""
    return pathlib.Path('/proc/self/task', str(os.getpid()), 'children').read_text().split()


def held():
    """All of these, each with its number."""
    return collections.Counter([*open_files(), *threads_of_python(), *children()])


def close_event_writers():
    """TensorFlow keeps them by directory, for good."""
    if 'tensorflow' in sys.modules:
        sys.modules['tensorflow'].compat.v1.summary.FileWriterCache.clear()


@pytest.fixture(autouse=True)
def nothing_is_leaked():
    """After a test, no file, thread or child is there that was not there before."""
    close_event_writers()
    before = held()
    yield
    close_event_writers()
    # tf.data may notice late that its iterator is gone.
    until(lambda: gc.collect() < 0 or not held() - before, 'the end of what the test has begun')


@pytest.fixture(scope='session')
def tiny(tmp_path_factory):
    """Checkpoints of a few hundred bytes."""
    return tinies.make(tmp_path_factory.mktemp('tiny'))


@pytest.fixture
def memory_folder():
    """A folder in memory, where nothing waits for a disk, or among other temporary files."""
    parent = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as directory:
        yield directory


@pytest.fixture
def survives_sigterm(monkeypatch):
    """Raises `Ended` where a training would let SIGTERM end the process."""
    def raise_signal(number):
        assert number == signal.SIGTERM
        raise Ended

    monkeypatch.setattr(signal, 'raise_signal', raise_signal)
