"""Saves of a cluster of real processes that fail or are killed."""

import dataclasses
import os
import pathlib
import signal
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.workers import running

from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.checkpoint import removal
from estimator_tpu_embedding.checkpoint.files import Storage
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.cluster.choice import ClusterChoice
from estimator_tpu_embedding.errors import CheckpointWriteError

pytestmark = [pytest.mark.soak, pytest.mark.no_rerun]


@pytest.fixture(autouse=True)
def exposed():
    """The server of this process may listen beside an interface of the machine."""
    before = defaults.current()
    defaults.set_current(dataclasses.replace(before, cluster=ClusterChoice(expose=True)))
    yield
    defaults.set_current(before)


ROWS, WIDTH = 4000, 4
INPUT = jobs.input_fn_of([
    {'a': np.arange(1, 9).reshape(4, 2), 'label': np.ones(4, np.float32)}] * 40)
"""Each step has the same batch, since a session that takes the place of another begins anew."""

COLUMNS = [jobs.embedding('a', ROWS, WIDTH)]


def job_on(workers, directory, **kwargs):
    return jobs.estimator(
        jobs.linear_model_fn(COLUMNS), COLUMNS,
        jobs.run_config(directory, hosts=len(workers.addresses), iterations=1,
                        workers=workers.addresses, **kwargs), batch_size=4, strategy='mod')


def test_a_save_that_fails_on_one_task_names_that_task(tmp_path):
    """Host 1 may write files of at most 20,000 bytes, and its rows and slots have 64,000."""
    with running(2, before={1: ['prlimit', '--fsize=20000']}) as workers:
        with pytest.raises(CheckpointWriteError) as caught:
            job_on(workers, tmp_path).train(INPUT, max_steps=1)
    assert f'worker {workers.addresses[1]} of host 1: ' in str(caught.value)
    assert str(tmp_path) in str(caught.value) and 'File too large' in str(caught.value)


class AtSave(tf.train.CheckpointSaverListener):
    """Does something to a worker when a save of a step begins, once."""

    def __init__(self, step, do):
        self._step, self._do, self.done = step, do, False

    def before_save(self, session, global_step):
        if global_step == self._step and not self.done:
            self.done = True
            self._do()


def test_a_task_that_dies_before_its_files_are_written_costs_no_checkpoint(tmp_path):
    with running(2) as workers:
        def kill():
            workers.kill(1)
            workers.start(1)

        listener = AtSave(4, kill)
        job_on(workers, tmp_path / 'one', save_checkpoints_steps=2).train(
            INPUT, max_steps=6, saving_listeners=[listener])
        job_on(workers, tmp_path / 'two', save_checkpoints_steps=2).train(INPUT, max_steps=6)
    assert listener.done
    assert sorted(path.name for path in (tmp_path / 'one').glob('*.index')) == [
        f'model.ckpt-{step}.index' for step in (0, 2, 4, 6)]
    assert_alike(tmp_path)


def test_a_frozen_task_that_thaws_writes_into_no_later_checkpoint(tmp_path):
    with running(2) as workers:
        frozen = workers.processes[1]

        def freeze():
            frozen.send_signal(signal.SIGSTOP)
            threading.Timer(20, frozen.send_signal, [signal.SIGCONT]).start()

        listener = AtSave(4, freeze)
        job_on(workers, tmp_path / 'one', save_checkpoints_steps=2).train(
            INPUT, max_steps=6, saving_listeners=[listener])
        job_on(workers, tmp_path / 'two', save_checkpoints_steps=2).train(INPUT, max_steps=6)
    assert listener.done
    assert_alike(tmp_path)


def assert_alike(tmp_path):
    """Two directories have the same newest checkpoint, and nothing is left of a save."""
    one, two = (recover(str(tmp_path / name)) for name in ('one', 'two'))
    assert one.step == two.step == 6
    readers = [tf.train.load_checkpoint(found.prefix) for found in (one, two)]
    for name in readers[0].get_variable_to_shape_map():
        np.testing.assert_array_equal(*[reader.get_tensor(name) for reader in readers], name)
    for name in ('one', 'two'):
        with Storage(str(tmp_path / name)) as storage:
            assert removal.clean(storage) == 0


@pytest.mark.serial
def test_saves_and_restores_hold_no_second_copy_of_a_table_on_any_process(tmp_path):
    """Rows and slots of the large job are 400 MB; each worker has half of them, the client none."""
    with running(2) as workers:
        def train(name, rows, steps, strategy):
            columns = [jobs.embedding('a', rows, 16, initializer=tf.zeros_initializer())]
            jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
                tmp_path / name, hosts=2, iterations=1, workers=workers.addresses),
                batch_size=4, strategy=strategy).train(INPUT, max_steps=steps)
            return [peak(process) for process in (os.getpid(), *(
                worker.pid for worker in workers.processes))]

        def train_thrice(name, rows):
            """Saves, restores at the same places, and moves all rows to other places."""
            return [train(name, rows, step, strategy)
                    for step, strategy in ((1, 'mod'), (2, 'mod'), (3, 'div'))][-1]

        before, after = train_thrice('small', 1000), train_thrice('large', 3_125_000)
    client, *others = [two - one for one, two in zip(before, after)]
    own = 2 * 3_125_000 * 16 * 4 // 2
    assert client < own // 4
    assert all(own < other < 1.5 * own for other in others)


def peak(pid):
    """The most bytes of memory that a process has had so far."""
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return 1024 * int(text.split('VmHWM:')[1].split()[0])
