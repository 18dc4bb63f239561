"""Checkpoints of jobs whose hosts are tasks of a cluster; here the tasks live in this process."""

import pathlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.graphs import KERNELS
from harness.parts import soak_except
from harness.tasks import Owners, Tasks, hosted_by

from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.checkpoint import saver
from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.hosts.placement import CLIENT_JOB, HOST_JOB, Placement

pytestmark = pytest.mark.no_rerun
ROWS = 11
TABLE = 'dense_features/a_embedding/embedding_weights'
TENSORS = [TABLE, f'{TABLE}/Adagrad']
INPUT = jobs.input_fn_of([
    {'a': np.arange(24).reshape(12, 2) * step % ROWS, 'label': np.ones(12, np.float32)}
    for step in range(1, 9)])
COLUMNS = [jobs.embedding('a', ROWS, 3)]


def estimator_of(directory, hosts, strategy='mod', kernels='auto', warm_start_from=None,
                 **kwargs):
    """A job whose batch of 12 suits 1, 2 and 3 hosts."""
    return jobs.estimator(
        jobs.linear_model_fn(COLUMNS), COLUMNS,
        jobs.run_config(directory, hosts=hosts, kernels=kernels, iterations=1, **kwargs),
        batch_size=12, strategy=strategy, warm_start_from=warm_start_from)


class First(tf.train.SessionRunHook):
    """Reads the rows and slots that a session begins with, in the order of ids."""

    def __init__(self, strategy):
        self.values, self._strategy = {}, strategy

    def after_create_session(self, session, coord):
        for name in TENSORS:
            parts = session.run(jobs.parts_of(session.graph, name))
            partition = jobs.Partition(strategy=self._strategy, vocabulary_size=ROWS,
                                       num_hosts=len(parts))
            whole = np.concatenate(parts)
            self.values[name] = whole[partition.stored_row(np.arange(ROWS))]


def stored(directory, strategy, hosts):
    return {name: jobs.stored(directory, name, strategy, hosts) for name in TENSORS}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], name)


@pytest.mark.parametrize('kernels', soak_except(KERNELS, 0))
@pytest.mark.parametrize('places', soak_except([
    [(None, 1, 'div'), (Tasks, 2, 'mod'), (None, 3, 'mod')],
    [(Tasks, 3, 'div'), (Tasks, 3, 'mod'), (Tasks, 1, 'div'), (None, 2, 'div'), (Tasks, 2, 'div'),
     (Owners, 2, 'mod')]], 0))
def test_rows_and_slots_stay_the_same_from_one_process_to_a_cluster_and_back(
        tmp_path, kernels, places):
    before = None
    for step, (cluster, hosts, strategy) in enumerate(places, 1):
        first = First(strategy)
        with hosted_by(cluster and cluster(hosts)):
            estimator_of(tmp_path, hosts, strategy, kernels).train(INPUT, [first], max_steps=step)
        if before is not None:
            assert_same(first.values, before)
        before = stored(tmp_path, strategy, hosts)
        assert not np.array_equal(before[TABLE], first.values[TABLE])


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


@pytest.mark.parametrize('kernels', soak_except(KERNELS, 0))
def test_each_task_writes_and_reads_its_own_rows_and_only_names_of_files_cross(
        tmp_path, kernels):
    estimator_of(tmp_path, 2, 'div', kernels).train(INPUT, max_steps=1)
    crossing = Crossing('save', 'restored_rows')
    with hosted_by(Tasks(2)):
        estimator_of(tmp_path, 2, 'mod', kernels).train(INPUT, [crossing], max_steps=2)
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


@pytest.mark.soak
def test_the_graph_of_a_checkpoint_and_an_export_name_no_task_so_any_process_opens_them(tmp_path):
    with hosted_by(Tasks(2)):
        job = estimator_of(tmp_path, 2, 'div', checkpoint_save_graph_def=True)
        job.train(INPUT, max_steps=1)
        exported = job.export_saved_model(str(tmp_path / 'export'), _receiver)
    saved = (pathlib.Path(exported.decode()) / 'saved_model.pb').read_bytes()
    graph = (tmp_path / 'model.ckpt-1.meta').read_bytes()
    for job_name in (CLIENT_JOB, HOST_JOB):
        assert job_name.encode() not in saved + graph
        assert job_name in (tmp_path / 'graph.pbtxt').read_text()  # TensorBoard colours by tasks.
    with tf.Graph().as_default(), tf.Session() as session:
        imported = tf.train.import_meta_graph(str(tmp_path / 'model.ckpt-1.meta'))
        imported.restore(session, str(tmp_path / 'model.ckpt-1'))
        parts = session.run([part for host in (0, 1) for part in tf.global_variables()
                             if part.op.name == f'{TABLE}/part_{host}'])
    np.testing.assert_array_equal(np.concatenate(parts), jobs.stored(tmp_path, TABLE, 'div', 2))


def _receiver():
    features = {'a': tf.placeholder(tf.int64, [None, 2])}
    return _legacy.load().export.ServingInputReceiver(features, features)


@pytest.mark.soak
@pytest.mark.parametrize('source, target', [
    ((None, 1, 'div'), (Tasks, 2, 'mod')), ((Tasks, 2, 'mod'), (None, 1, 'div')),
    ((Tasks, 3, 'mod'), (Tasks, 2, 'mod'))])
def test_tables_start_warm_with_the_rows_of_their_ids(tmp_path, monkeypatch, source, target):
    cluster, hosts, strategy = source
    with hosted_by(cluster and cluster(hosts)):
        estimator_of(tmp_path / 'source', hosts, strategy).train(INPUT, max_steps=1)
    before = stored(tmp_path / 'source', strategy, hosts)
    cluster, hosts, strategy = target
    first = First(strategy)
    monkeypatch.chdir(tmp_path)
    with hosted_by(cluster and cluster(hosts)):
        estimator_of(tmp_path / 'target', hosts, strategy, warm_start_from='source').train(
            INPUT, [first], max_steps=1)
    np.testing.assert_array_equal(first.values[TABLE], before[TABLE])


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


@pytest.mark.soak
@pytest.mark.parametrize('kernels', KERNELS)
def test_a_random_initializer_gives_a_cluster_the_rows_of_one_process(tmp_path, kernels):
    found = {}
    for name, cluster in (('block', None), ('owners', Owners(3)), ('tasks', Tasks(3))):
        first = First('mod')
        with hosted_by(cluster):
            estimator_of(tmp_path / name, 3, 'mod', kernels).train(INPUT, [first], max_steps=1)
        found[name] = {**first.values, 'w': jobs.stored(tmp_path / name, 'w/kernel')}
    assert_same(found['block'], found['owners'])
    assert_same(found['tasks'], found['owners'])
    assert len(np.unique(found['tasks'][TABLE])) == found['tasks'][TABLE].size


@pytest.mark.soak
def test_a_training_with_evaluations_in_between_goes_on_from_its_own_checkpoints(tmp_path):
    results = {}
    for name, cluster in (('owners', Owners(2)), ('tasks', Tasks(2))):
        with hosted_by(cluster):
            job = estimator_of(tmp_path / name, 2, save_checkpoints_steps=2)
            results[name] = _legacy.load().train_and_evaluate(
                job, _legacy.load().TrainSpec(INPUT, max_steps=4),
                _legacy.load().EvalSpec(INPUT, steps=1, start_delay_secs=0, throttle_secs=0))
            assert len(list(job.predict(INPUT))) == 12 * 8
    assert results['tasks'][0]['global_step'] == 4
    assert results['tasks'] == results['owners']
    assert_same(*[stored(tmp_path / name, 'mod', 2) for name in results])


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
