"""Checks of every test that it leaks no thread and connects to this machine only."""

import gc
import os
import socket
import sys
import threading

os.environ['TF_USE_LEGACY_KERAS'] = '1'
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import pytest  # noqa: E402

pytest_plugins = ['harness.recorder']
OURS = ('infeed', 'tower', 'close-session')


@pytest.fixture(autouse=True)
def no_leaked_threads():
    """Every thread that a test made this package start has ended with it."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate()
            if thread not in before and thread.name.startswith(OURS)]
    for thread in left:
        thread.join(150)  # tf.data may notice only after a while that its iterator is gone.
    assert not [thread.name for thread in left if thread.is_alive()]


@pytest.fixture(autouse=True, scope='module')
def no_workers_left():
    """The workers that this process started for the tests of a module have ended with them."""
    yield
    if made := sys.modules.get('estimator_tpu_embedding.cluster.cluster'):
        for cluster in made._clusters.values():
            cluster.close()


def pytest_collection_finish():
    """What is imported stays: the garbage collector need not look at it again for each graph."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope='session')
def only_loopback():
    """Connecting to another machine is an error."""
    connect = socket.socket.connect

    def connect_to_loopback(self, address):
        if isinstance(address, tuple) and address[0] not in ('127.0.0.1', '::1', 'localhost'):
            raise AssertionError(f'a test tried to connect to {address}')
        return connect(self, address)

    socket.socket.connect = connect_to_loopback
    yield
    socket.socket.connect = connect
