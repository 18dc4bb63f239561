"""Checkpoints of jobs whose hosts are tasks of a cluster.

The tasks live in this process, but for the saves at the end, which fail or are killed.
"""

import dataclasses
import signal
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.tasks import Tasks, hosted_by
from harness.workers import running

from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.checkpoint import commit, saver
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import CheckpointWriteError, ConfigError
from estimator_tpu_embedding.hosts.placement import Placement

pytestmark = pytest.mark.no_rerun
ROWS = 11

INPUT = jobs.input_fn_of([
    {'a': np.arange(24).reshape(12, 2) * step % ROWS, 'label': np.ones(12, np.float32)}
    for step in range(1, 9)])
COLUMNS = [jobs.embedding('a', ROWS, 3)]


def estimator_of(directory, hosts, strategy='mod'):
    """A job whose batch of 12 suits 1, 2 and 3 hosts."""
    return jobs.estimator(
        jobs.linear_model_fn(COLUMNS), COLUMNS,
        jobs.run_config(directory, hosts=hosts, iterations=1), batch_size=12, strategy=strategy)


class Crossing(tf.train.SessionRunHook):
    """Finds the tensors that leave their device for operations in some name scopes."""

    def __init__(self, *scopes):
        self.scopes, self.found, self.files, self.merged_on = scopes, [], {}, None

    def begin(self):
        self._graph = tf.get_default_graph()

    def after_create_session(self, session, coord):
        operations = [one for one in self._graph.get_operations()
                      if one.name.split('/')[0] in self.scopes]
        assert {one.name.split('/')[0] for one in operations} == set(self.scopes)
        self.found = [tensor for one in operations for tensor in one.inputs
                      if tensor.op.device != one.device and tensor.dtype != tf.resource]
        self.files = {one.device: one.get_attr('dtypes') for one in operations
                      if one.type == 'SaveV2'}
        self.merged_on, = {one.device for one in operations if one.type == 'MergeV2Checkpoints'}


def test_each_task_writes_and_reads_its_own_rows_and_only_names_of_files_cross(tmp_path):
    estimator_of(tmp_path, 2, 'div').train(INPUT, max_steps=1)
    crossing = Crossing('save', 'restored_rows')
    with hosted_by(Tasks(2)):
        estimator_of(tmp_path, 2).train(INPUT, [crossing], max_steps=2)
    assert crossing.found
    assert [one for one in crossing.found if one.shape.num_elements() != 1] == []
    placement = Placement(Topology(num_hosts=2), is_remote=True)
    client = placement.client
    assert crossing.merged_on == client
    assert sorted(crossing.files) == [
        client, placement.host(0), placement.host(1)]
    assert tf.int64 in crossing.files[client]  # The global step.
    assert sorted(path.name for path in tmp_path.glob('model.ckpt-2.data*')) == [
        f'model.ckpt-2.data-0000{file}-of-00003' for file in range(3)]


def test_a_relative_model_dir_is_absolute_for_tasks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cluster = Tasks(2)
    with hosted_by(cluster):
        job = estimator_of('model', 2)
        job.train(INPUT, max_steps=1)
        job.evaluate(INPUT, steps=1, checkpoint_path='model/model.ckpt-1')
        job.evaluate(INPUT, steps=1)
    directory, checkpoint = str(tmp_path / 'model'), str(tmp_path / 'model' / 'model.ckpt-1')
    assert [admitted[1:] for admitted in cluster.admitted] == [
        (directory, ''), ('', checkpoint), ('', checkpoint)]
    assert [[(part['rows'], part['bytes']) for host in admitted[0] for part in host]
            for admitted in cluster.admitted] == [
        [(6, 6 * 3 * 4 * 2), (5, 5 * 3 * 4 * 2)], *[[(6, 6 * 3 * 4), (5, 5 * 3 * 4)]] * 2]


def test_a_saver_of_the_user_that_gathers_large_tables_is_refused_before_the_first_step(
        tmp_path, monkeypatch):
    monkeypatch.setattr(saver, '_MOST_BYTES', 6 * 3 * 4)  # Host 0 has 6 rows of width 3.
    model = jobs.linear_model_fn(COLUMNS)

    def gathering(features, labels, mode, params):
        return model(features, labels, mode, params)._replace(
            scaffold_fn=lambda: tf.train.Scaffold(saver=tf.train.Saver()))

    with hosted_by(Tasks(2)), pytest.raises(ConfigError, match='E743.*72 bytes of a table'):
        jobs.estimator(gathering, COLUMNS, jobs.run_config(tmp_path, hosts=2),
                       batch_size=12).train(INPUT, max_steps=1)


@pytest.fixture
def exposed():
    """The server of this process may listen beside an interface of the machine."""
    before = defaults.current()
    defaults.set_current(dataclasses.replace(before, cluster=ClusterChoice(expose=True)))
    yield
    defaults.set_current(before)


SAME_INPUT = jobs.input_fn_of([
    {'a': np.arange(1, 9).reshape(4, 2), 'label': np.ones(4, np.float32)}] * 40)
"""Each step has the same batch, since a session that takes the place of another begins anew."""

MANY_ROWS = [jobs.embedding('a', 4000, 4)]


def job_on(workers, directory, **kwargs):
    return jobs.estimator(
        jobs.linear_model_fn(MANY_ROWS), MANY_ROWS,
        jobs.run_config(directory, hosts=len(workers.addresses), iterations=1,
                        workers=workers.addresses, **kwargs), batch_size=4, strategy='mod')


@pytest.mark.soak
@pytest.mark.usefixtures('exposed')
def test_a_save_that_fails_on_one_task_names_that_task(tmp_path):
    """Host 1 may write files of at most 20,000 bytes, and its rows and slots have 64,000."""
    with running(2, before={1: ['prlimit', '--fsize=20000']}) as workers:
        with pytest.raises(CheckpointWriteError) as caught:
            job_on(workers, tmp_path).train(SAME_INPUT, max_steps=1)
    assert f'worker {workers.addresses[1]} of host 1: ' in str(caught.value)
    assert str(tmp_path) in str(caught.value) and 'File too large' in str(caught.value)


class Freezes(tf.train.CheckpointSaverListener):
    """Stops a worker for 20 seconds when the save of step 4 begins, once."""

    def __init__(self, worker):
        self._worker, self.done = worker, False

    def before_save(self, session, global_step):
        if global_step == 4 and not self.done:
            self.done = True
            self._worker.send_signal(signal.SIGSTOP)
            threading.Timer(20, self._worker.send_signal, [signal.SIGCONT]).start()


@pytest.mark.soak
@pytest.mark.usefixtures('exposed')
def test_a_task_that_freezes_before_its_files_are_written_and_thaws_costs_no_checkpoint(tmp_path):
    with running(2) as workers:
        listener = Freezes(workers.processes[1])
        job_on(workers, tmp_path / 'one', save_checkpoints_steps=2).train(
            SAME_INPUT, max_steps=6, saving_listeners=[listener])
        job_on(workers, tmp_path / 'two', save_checkpoints_steps=2).train(SAME_INPUT, max_steps=6)
    assert listener.done
    one, two = (recover(str(tmp_path / name)) for name in ('one', 'two'))
    assert one.step == two.step == 6
    readers = [tf.train.load_checkpoint(found.prefix) for found in (one, two)]
    for name in readers[0].get_variable_to_shape_map():
        np.testing.assert_array_equal(*[reader.get_tensor(name) for reader in readers], name)
    with Storage(str(tmp_path / 'one')) as storage:  # Nothing is left of the save.
        assert commit.clean(storage) == 0
