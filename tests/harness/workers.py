"""Starts real workers on loopback, and ends them, whatever a test does."""

import contextlib
import functools
import os
import subprocess
import sys
import tempfile

import tensorflow.compat.v1 as tf

from estimator_tpu_embedding import _tf
from estimator_tpu_embedding.cluster import heartbeats
from estimator_tpu_embedding.cluster.worker import TOKEN, Lease, Worker

from . import groups
from .network import require_private_network
from .processes import free_addresses, path_with_harness

heartbeats.SILENCE = 30.0
"""Seconds, so that no worker is lost because the machine is busy."""


class Workers:
    """Workers that run.

    Attributes:
      addresses: of each, such as `'127.0.0.1:20123'`.
      processes: the `subprocess.Popen` of each.
    """

    def __init__(self, addresses, stack, flags, before, modules, environment):
        self.addresses, self.processes = list(addresses), [None] * len(addresses)
        self._stack, self._flags, self._environment = stack, flags, environment
        self._before, self._modules = before or {}, modules or {}
        self._logs = [stack.enter_context(tempfile.TemporaryFile('w+')) for _ in addresses]
        for index in range(len(addresses)):
            self.start(index)
        for index in range(len(addresses)):
            self.wait(index)

    def start(self, index):
        """Starts a worker at its address, perhaps again; `wait` waits until it listens."""
        process = groups.spawn(
            [*self._before.get(index, ()), sys.executable, '-m',
             self._modules.get(index, 'estimator_tpu_embedding'),
             'worker', '--listen', self.addresses[index], '--expose', *self._flags],
            stdout=subprocess.PIPE, stderr=self._logs[index], text=True, env={
                **os.environ, 'PYTHONPATH': path_with_harness(), 'TF_CPP_MIN_LOG_LEVEL': '2',
                **self._environment})
        self.processes[index] = process
        self._stack.callback(groups.end, process)

    def wait(self, index):
        """Waits until a worker that was started listens."""
        line = self.processes[index].stdout.readline()
        assert line.startswith('[etpe] worker at'), (line, self.log(index))

    def kill(self, index):
        """Kills a worker, and waits until it is gone."""
        groups.end(self.processes[index])

    def log(self, index):
        """The standard error of a worker until now."""
        self._logs[index].seek(0)
        return self._logs[index].read()

    def __str__(self):
        return ','.join(self.addresses)


@contextlib.contextmanager
def running(count, *flags, before=None, modules=None, **environment):
    """While the body runs, so do `count` workers on free ports of 127.0.0.1.

    Each is `etpe worker --listen 127.0.0.1:PORT --expose` with `flags` besides, in a process that
    dies with this one. In the end all are killed, and what they said is shown.

    Args:
      count: of workers.
      *flags: see above.
      before: by number of the worker, a command that runs the command line which follows it.
      modules: by number of the worker, the module that is `etpe` instead of the package.
      **environment: variables of all.

    Yields:
      `Workers`, which all listen.
    """
    require_private_network()
    workers = None
    with contextlib.ExitStack() as stack:
        try:
            workers = Workers(free_addresses(count), stack, flags, before, modules, environment)
            yield workers
        finally:
            for index, address in enumerate(workers.addresses if workers else ()):
                print(f'--- worker {address} ---', workers.log(index)[-4000:], sep='\n')


@contextlib.contextmanager
def in_this_process():
    """While the body runs, this process answers as a worker does, at the address that is given."""
    worker = Worker(Lease(60.), {})
    answer = worker.answer
    _tf.register_function(TOKEN, answer)
    yield _server().target.removeprefix('grpc://')


@functools.cache
def _server():
    """A server, which cannot end, so all tests share it."""
    require_private_network()
    return tf.distribute.Server({'etpe_boot': ['127.0.0.1:0']}, job_name='etpe_boot', task_index=0)
