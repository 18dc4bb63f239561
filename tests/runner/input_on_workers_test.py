"""`input_on_workers`: the input of a host is built on its worker, with the same results."""

import re
from unittest import mock

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.processes import run_python
from harness.tasks import Tasks
from harness.workers import running

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.core.deployment import per_host
from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator import tpu_addresses
from estimator_tpu_embedding.hosts.placement import Placement
from estimator_tpu_embedding.runner.checkpoint_hooks import CheckpointInputPipelineHook
from estimator_tpu_embedding.runner.infeed_operations import built_on_host

TOPOLOGY = Topology(num_hosts=2, cores_per_host=2)
ON_HOSTS = Placement(TOPOLOGY, is_remote=True, has_input_on_hosts=True)
SECOND = per_host(TOPOLOGY)[1]


def made(build, placement=ON_HOSTS, invocation=SECOND):
    """The devices of what `build` makes in an invocation of input_fn."""
    with tf.Graph().as_default() as graph, tf.device(placement.client):
        with built_on_host(placement, invocation):
            build()
        return {operation.device for operation in graph.get_operations()}


def plus_one(number):
    return tf.numpy_function(lambda value: value + 1, [number], tf.int64)


def numbers():
    return tf.data.Dataset.range(4)


PYTHON = {
    'FlatMapDataset': lambda: tf.data.Dataset.from_generator(lambda: range(4), tf.int64),
    'ParallelMapDatasetV2': lambda: numbers().map(
        lambda number: tf.py_function(lambda value: value, [number], tf.int64), 2),
    'FilterDataset': lambda: numbers().filter(
        lambda number: tf.cond(number > 1, lambda: plus_one(number) > 1, lambda: True)),
    'PyFunc': lambda: plus_one(tf.constant(1, tf.int64))}


@pytest.mark.parametrize('kind', PYTHON)
def test_python_is_refused_wherever_it_is(kind):
    with pytest.raises(ConfigError, match=(
            r'E736 input_fn of host 1: with input_on_workers all .*; got (Eager)?PyFunc'
            rf'(, in a function of)? ?({kind})? "{kind}"\.  Leave input_on_workers off')):
        made(PYTHON[kind])
    client = Placement(TOPOLOGY, is_remote=True)
    assert made(PYTHON[kind], client) == {client.client}


def test_all_that_cannot_be_on_a_worker_is_told_at_once():
    def build():
        tf.data.Dataset.zip((numbers().map(plus_one), numbers().filter(
            lambda number: plus_one(number) > 1), numbers().map(lambda number: number + 1)))

    with pytest.raises(ConfigError) as caught:
        made(build)
    assert [re.findall('function of (.*?) ', str(one)) for one in caught.value.problems] == [
        ['MapDataset'], ['FilterDataset']]


def squares():
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
        tf.range(4, dtype=tf.int64), tf.range(4, dtype=tf.int64)**2), -1)


def test_a_table_of_the_client_is_refused_and_one_of_input_fn_is_on_its_worker():
    assert made(lambda: numbers().map(squares().lookup)) == {ON_HOSTS.host(1)}
    with pytest.raises(ConfigError, match=r'E737 input_fn of host 1: .*; got HashTableV2 '
                       r'"hash_table" for MapDataset "MapDataset"\.  Make it within'):
        with tf.Graph().as_default(), tf.device(ON_HOSTS.client):
            table = squares()
            with built_on_host(ON_HOSTS, SECOND):
                numbers().map(table.lookup)


def test_a_run_config_says_it_or_else_the_process():
    assert not ete.RunConfig().input_on_workers
    defaults.set_current(defaults.Defaults(input_on_workers=True))
    assert ete.RunConfig().input_on_workers
    assert not ete.RunConfig(input_on_workers=False).input_on_workers


STEPS = [{'f': np.arange(8) * number % 10, 'label': np.full(8, number, np.float32)}
         for number in range(12)]


class Seen(tf.train.SessionRunHook):
    """Notes the labels of each step, and the devices of iterators."""

    def __init__(self):
        self.labels, self.devices = [], set()

    def begin(self):
        self.devices = {each.device for each in tf.get_collection('iterators')}

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection('seen')[0])

    def after_run(self, run_context, run_values):
        self.labels.append(float(run_values.results))


def estimator_of(directory, on_workers):
    columns = [jobs.embedding('f')]

    def model_fn(features, labels, mode, params):
        if labels is not None:
            tf.add_to_collection('seen', labels[0])
        return jobs.linear_model_fn(columns)(features, labels, mode, params)

    return jobs.estimator(model_fn, columns, jobs.run_config(
        directory, 2, 2, 1, save_checkpoints_steps=2, input_on_workers=on_workers))


def on_tasks():
    """Lets jobs run on two tasks of this process."""
    return mock.patch.object(tpu_addresses, 'cluster_of', lambda config: Tasks(2))


def results(directory, on_workers):
    """All that a job computes: stored tensors after 3 and 3 more steps, metrics, predictions."""
    with on_tasks():
        for steps in (3, 6):  # The second training goes on after the samples of the first.
            seen = Seen()
            estimator = estimator_of(directory, on_workers)
            estimator.train(jobs.input_fn_of(STEPS), max_steps=steps, hooks=[
                CheckpointInputPipelineHook(estimator), seen])
            assert seen.labels == list(range(steps - 3, steps))
        metrics = estimator.evaluate(jobs.input_fn_of(STEPS), steps=3)
        rows = list(estimator.predict(jobs.input_fn_of(STEPS[:2])))
    stored = {name: estimator.get_variable_value(name)
              for name in estimator.get_variable_names()}
    return seen.devices, (stored, metrics, rows)


@pytest.mark.soak
def test_it_computes_the_same_and_goes_on_with_the_same_samples(tmp_path):
    devices, of_client = results(tmp_path / 'client', False)
    assert devices == {ON_HOSTS.client}
    devices, of_workers = results(tmp_path / 'workers', True)
    assert devices == {ON_HOSTS.host(0), ON_HOSTS.host(1)}
    tf.nest.map_structure(np.testing.assert_array_equal, of_workers, of_client)


def test_a_job_with_python_in_its_input_is_refused_before_anything_runs(tmp_path):
    def input_fn(params):
        return jobs.input_fn_of(STEPS)(params).map(lambda features, label: (
            features, tf.ensure_shape(tf.numpy_function(np.abs, [label], tf.float32), [2])))

    cluster = Tasks(2)
    with mock.patch.object(tpu_addresses, 'cluster_of', lambda config: cluster):
        with pytest.raises(ConfigError, match='E736 input_fn of host 0: .* PyFunc, in a function '):
            estimator_of(tmp_path, True).train(input_fn, steps=1)
    assert not cluster.admitted


FILE_JOB = '''
import tensorflow.compat.v1 as tf

columns = [tf.tpu.experimental.embedding_column(
    tf.feature_column.categorical_column_with_identity('id', 10), 2)]


def input_fn(params):
    host = params['context'].current_host
    lines = tf.data.TextLineDataset(f'ids_of_{host}.csv').map(
        lambda line: tf.io.decode_csv(line, [[0], [0.]]))
    return lines.repeat().batch(params['batch_size'], drop_remainder=True).map(
        lambda number, label: ({'id': number}, label))


def model_fn(features, labels, mode, params):
    net = tf.keras.layers.DenseFeatures(columns)(features)
    loss = tf.reduce_mean((tf.reduce_sum(net, 1) - labels)**2)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
        loss, tf.train.get_global_step()))


estimator = tf.estimator.tpu.TPUEstimator(
    model_fn, train_batch_size=8, config=tf.estimator.tpu.RunConfig(
        model_dir=MODEL_DIR, tf_random_seed=1, tpu_config=tf.estimator.tpu.TPUConfig(
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2)),
    embedding_config_spec=tf.estimator.tpu.experimental.EmbeddingConfigSpec(
        columns, tf.tpu.experimental.AdagradParameters(.1)))
estimator.train(input_fn, steps=5)
print(estimator.get_variable_value(estimator.get_variable_names()[1]).tolist())
'''


@pytest.mark.soak
def test_workers_read_files_that_the_client_does_not_see(tmp_path):
    here, there = tmp_path / 'client', tmp_path / 'workers'
    for folder, model in ((here, 'model'), (there, 'other')):
        folder.mkdir()
        (folder / 'job.py').write_text(FILE_JOB.replace('MODEL_DIR', repr(str(tmp_path / model))))
    for host in range(2):
        (there / f'ids_of_{host}.csv').write_text(
            ''.join(f'{(number + host) % 10},{number / 4}\n' for number in range(12)))

    def run(folder, *options):
        return run_python('-m', 'estimator_tpu_embedding', 'run', '--cores', 2, *options,
                          'job.py', cwd=folder)

    with running(2, before=dict.fromkeys(range(2), ('env', '-C', there))) as addresses:
        on_workers = ['--workers', addresses, '--expose']
        missing = run(here, *on_workers)
        assert missing.returncode == 1
        assert re.search(r'ids_of_[01]\.csv; No such file', missing.stderr)
        found = run(here, *on_workers, '--input-on-workers')
    alone = run(there, '--hosts', 2)
    assert alone.stdout == found.stdout != ''
