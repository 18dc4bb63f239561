"""The graphs of jobs on a real TPU are the original's."""

import json
import textwrap

import pytest
import tensorflow.compat.v1 as tf
from harness import tpu_graphs
from harness.processes import ROOT, path_with_harness, run_harness, run_python

GOLDENS = ROOT / 'tests' / 'golden' / 'tpu_graphs.json'
JOB = '''
    import tensorflow.compat.v1 as tf
    from harness import tpu_jobs
    tf.disable_v2_behavior()
    tpu_jobs.train_and_evaluate('columns adagrad', {model_dir!r})
    '''


def run(tmp_path, *flags, **more):
    """Runs one of the jobs by `etpe run`."""
    script = tmp_path / 'job.py'
    script.write_text(textwrap.dedent(JOB.format(model_dir=str(tmp_path / 'model'))))
    return run_python('-m', 'estimator_tpu_embedding', 'run', *flags, script,
                      PYTHONPATH=path_with_harness(), **more)


def test_every_node_is_that_of_tensorflow_2_15():
    theirs = tpu_graphs.unpacked(json.loads(GOLDENS.read_text()))
    done = run_harness('tpu_graph_job')
    assert done.returncode == 0
    ours = json.loads(done.stdout.splitlines()[-1])
    assert ours.keys() == theirs.keys() and len(ours) == 58
    assert {name: different for name in ours
            if (different := tpu_graphs.differences(ours[name], theirs[name]))} == {}


def test_slots_in_another_order_are_seen():
    summaries = []
    for momenta, velocities in ((2.0, 3.0), (3.0, 2.0)):
        with tf.Graph().as_default() as graph:
            tf.raw_ops.LoadTPUEmbeddingADAMParameters(
                parameters=[[1.0]], momenta=[[momenta]], velocities=[[velocities]], num_shards=1,
                shard_id=0, table_name='t')
        summaries.append(tpu_graphs.of_graph(graph.as_graph_def()))
    assert tpu_graphs.differences(*summaries)


def test_a_difference_in_one_node_is_seen():
    graph = {'NoOp 12345678': 2, 'SendTPUEmbeddingGradients | N=4': 1}
    other = {'NoOp 12345678': 2, 'SendTPUEmbeddingGradients | N=3': 1}
    assert tpu_graphs.unpacked(json.loads(json.dumps(tpu_graphs.packed({'a': graph})))) == {
        'a': graph}
    assert tpu_graphs.differences(graph, graph) == {}
    assert tpu_graphs.differences(graph, other) == {
        'SendTPUEmbeddingGradients | N=3': (0, 1), 'SendTPUEmbeddingGradients | N=4': (1, 0)}


def test_graph_only_writes_graphs_that_inspect_shows_and_trains_nothing(tmp_path):
    directory = tmp_path / 'graphs'
    done = run(tmp_path, '--backend', 'tpu', '--graph-only', directory, '--hosts', '2', '--cores',
               '2')
    assert done.returncode == 0
    assert 'train: wrote the graph of ' in done.stderr and 'nothing ran' in done.stderr
    assert sorted(path.name for path in directory.iterdir()) == [
        'evaluate.config.pbtxt', 'evaluate.graph.pb', 'evaluate.system.pb',
        'train.config.pbtxt', 'train.graph.pb', 'train.system.pb']
    assert not list((tmp_path / 'model').glob('model.ckpt*'))
    shown = run_python('-m', 'estimator_tpu_embedding', 'inspect', directory).stdout
    assert 'training, global 16 = 2 hosts x 2 cores x 4, div' in shown and 'tbl_who' in shown


def test_another_run_overwrites_no_graph(tmp_path):
    for _ in range(2):
        done = run(tmp_path, '--backend', 'tpu', '--graph-only', tmp_path / 'graphs')
        assert done.returncode == 0
    assert {path.name for path in (tmp_path / 'graphs').glob('train*.graph.pb')} == {
        'train.graph.pb', 'train_2.graph.pb'}


@pytest.mark.parametrize(('flags', 'said'), [
    (('--graph-only', 'graphs'), 'only a job for a TPU has graphs to write'),
    (('--backend', 'tpu', '--graph-only', 'job.py'), 'must be a directory'),
    (('--backend', 'tpu', '--graph-only', 'g', '--processes', '2'), 'they emulate a TPU')])
def test_choices_that_exclude_each_other_are_refused(tmp_path, flags, said):
    done = run(tmp_path, *flags, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr


def test_a_process_keeps_the_backend_that_it_has_installed():
    done = run_python('-c', textwrap.dedent('''
        import estimator_tpu_embedding as ete
        ete.install()
        ete.install(backend='tpu', graph_only='graphs')
        '''))
    assert done.returncode == 1 and 'E940 backend: a process has one' in done.stderr


VARIANTS = '''
    import sys
    import estimator_tpu_embedding as ete
    ete.install(1, 8, backend='tpu', graph_only=sys.argv[1] + '/graphs')
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()  # Otherwise the loop is a function.

    def model_fn(features, mode, params):
        loss = tf.reduce_sum(tf.layers.dense(features['x'], 1))
        optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
            loss, tf.train.get_global_step()))

    def input_fn(params):
        return tf.data.Dataset.from_tensors({'x': tf.ones([params['batch_size'], 2])}).repeat()

    for use_tpu, cores in ((True, None), (True, 2), (False, None)):
        config = ete.RunConfig(ete.TPUConfig(
            num_cores_per_replica=cores,
            per_host_input_for_training=ete.InputPipelineConfig.PER_HOST_V2))
        ete.TPUEstimator(model_fn, sys.argv[1] + '/model', config, use_tpu=use_tpu,
                         train_batch_size=8).train(input_fn, max_steps=1)
    '''


def test_our_optimizer_sums_on_a_tpu_and_every_run_of_a_script_only_writes(tmp_path):
    done = run_python('-c', textwrap.dedent(VARIANTS), tmp_path)
    assert done.returncode == 0
    found = []
    for name in ('train', 'train_2', 'train_3'):
        graph = tf.GraphDef.FromString((tmp_path / 'graphs' / f'{name}.graph.pb').read_bytes())
        operations = [node.op for node in graph.node]
        metadata, = [node.attr for node in graph.node if node.op == 'TPUReplicateMetadata'] or [{}]
        found.append((operations.count('CrossReplicaSum'),
                      metadata['num_replicas'].i if metadata else None))
    # Two gradients. Without a TPU there is nothing to sum over.
    assert found == [(2, 8), (2, 4), (0, None)]
    assert not list((tmp_path / 'model').glob('model.ckpt*'))
