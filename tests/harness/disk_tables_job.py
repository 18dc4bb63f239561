"""Trains a job whose tables are on a disk, in a process of its own that may have little memory.

    python -m harness.disk_tables_job MODEL_DIR DIRECTORY [--rows N] [--room BYTES]
        [--then ACTION]

With `--room` the process may take so many bytes more than it has, files aside. ACTION is what
happens after the first step: `kill` ends the process at once; `fail` takes the file from under
the tables, as if the disk had failed; `fail-elsewhere` reads what another mapped file has no more,
in a process that had a handler of such errors before. At the end it prints the step of the newest
checkpoint.
"""

import argparse
import ctypes
import faulthandler
import mmap
import os
import pathlib
import resource
import signal
import tempfile

os.environ['TF_USE_LEGACY_KERAS'] = '1'

import numpy as np  # noqa: E402
import psutil  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from harness import jobs  # noqa: E402

import estimator_tpu_embedding as ete  # noqa: E402

WIDTH = 128


def mapped():
    """The beginning and the bytes of what this process has mapped from files without a name."""
    found = [line.split()[0].split('-')
             for line in pathlib.Path('/proc/self/maps').read_text().splitlines()
             if line.endswith('(deleted)') and ' rw-s ' in line]
    return [(int(begin, 16), int(end, 16) - int(begin, 16)) for begin, end in found]


def fail():
    """Maps an empty file over the tables: their addresses stay, and no page of them can be had."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
    with tempfile.TemporaryFile() as empty:
        for begin, size in mapped():
            assert libc.mmap(begin, size, mmap.PROT_READ | mmap.PROT_WRITE,
                             mmap.MAP_SHARED | 0x10, empty.fileno(), 0) == begin  # MAP_FIXED


def fail_elsewhere():
    """Maps a file of its own, makes that empty, and reads."""
    with tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        own = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        file.truncate(0)
        own.read(1)


class After(tf.train.SessionRunHook):
    """Does something after the first run."""

    def __init__(self, action):
        """`action` is called once."""
        self._action = action

    def after_run(self, run_context, run_values):
        assert len(mapped()) == 2
        self._action()


def main():
    """See above."""
    parser = argparse.ArgumentParser()
    parser.add_argument('model_dir')
    parser.add_argument('directory')
    parser.add_argument('--rows', type=int, default=20_000)
    parser.add_argument('--room', type=int)
    parser.add_argument('--then', choices=['kill', 'fail', 'fail-elsewhere'])
    parsed = parser.parse_args()
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.zeros([]))  # What TensorFlow takes for itself when it first runs.
    if parsed.room is not None:
        most = psutil.Process().memory_info().data + parsed.room
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    action = {None: lambda: None, 'kill': lambda: os.kill(os.getpid(), signal.SIGKILL),
              'fail': fail, 'fail-elsewhere': fail_elsewhere}[parsed.then]
    if parsed.then == 'fail-elsewhere':
        faulthandler.enable()
    ids = np.random.default_rng(1).integers(0, parsed.rows, [8, 4])
    columns = [jobs.embedding('f', parsed.rows, WIDTH, 'mean')]
    estimator = jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
        parsed.model_dir, iterations=1,
        table_memory=ete.TableMemory(parsed.directory, '4MiB')))
    estimator.train(jobs.input_fn_of(4 * [{'f': ids, 'label': np.ones(8, np.float32)}]), steps=2,
                    hooks=[After(action)])
    print('step', tf.train.load_variable(parsed.model_dir, 'global_step'))


if __name__ == '__main__':
    main()
