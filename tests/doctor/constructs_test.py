"""Constructs are known by every road that they ever had, and nothing else is taken for one."""

import inspect

import pytest
from harness.doctored import scanned

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.doctor import constructs, traps
from estimator_tpu_embedding.doctor.constructs import construct_of
from estimator_tpu_embedding.doctor.values import UNREAD, Flag


@pytest.mark.parametrize('path', [
    'tensorflow.contrib.tpu.TPUConfig', 'tensorflow.estimator.tpu.TPUConfig',
    'tensorflow.compat.v1.estimator.tpu.TPUConfig', 'tensorflow.python.tpu.tpu_config.TPUConfig',
    'tensorflow.compat.v1.contrib.tpu.TPUConfig', 'estimator_tpu_embedding.TPUConfig',
    'tensorflow.contrib.tpu.python.tpu.tpu_config.TPUConfig',
    'tensorflow_core.contrib.tpu.TPUConfig',
    'tensorflow_estimator.python.estimator.tpu.tpu_config.TPUConfig',
    'tensorflow.python.estimator.tpu.tpu_config.TPUConfig'])
def test_every_road_leads_to_one_name(path):
    assert construct_of(path) == 'TPUConfig'


@pytest.mark.parametrize('path, kind', [
    ('tensorflow.tpu.cross_replica_sum', 'cross_replica_sum'),
    ('tensorflow.contrib.tpu.RunConfig', 'RunConfig'),
    ('estimator_tpu_embedding.RunConfig', 'RunConfig'),
    ('tensorflow.compat.v1.tpu.shard', 'shard'),
    ('tensorflow.python.tpu.tpu.shard', 'shard'),
    ('tensorflow.tpu.experimental.embedding_column', 'embedding_column'),
    ('tensorflow.python.tpu.feature_column_v2.embedding_column_v2', 'embedding_column'),
    ('tensorflow.distribute.experimental.TPUStrategy', 'TPUStrategy'),
    ('tensorflow.contrib.cluster_resolver.TPUClusterResolver', 'TPUClusterResolver'),
    ('tensorflow.python.tpu.tpu_embedding.TPUEmbedding', 'TPUEmbedding'),
    ('tensorflow.tpu.experimental.embedding.TPUEmbedding', 'embedding.TPUEmbedding'),
    ('tensorflow.python.tpu.tpu_embedding_v2.TPUEmbedding', 'embedding.TPUEmbedding'),
    ('tensorflow.contrib.tpu.repeat', 'repeat'),
    ('tensorflow.raw_ops.InfeedDequeueTuple', 'feed operation'),
    ('tensorflow.python.tpu.ops.tpu_ops.outfeed_enqueue', 'feed operation')])
def test_names_that_several_things_have_need_a_module_of_a_tpu(path, kind):
    assert construct_of(path) == kind


@pytest.mark.parametrize('path', [
    'tensorflow.estimator.RunConfig', 'tensorflow.data.Dataset.shard', 'tensorflow.while_loop',
    'tensorflow.feature_column.embedding_column', 'tensorflow.keras.Model.compile', 'tensorflow',
    'mine.TPUConfig', 'TPUConfig', '', 'tensorflow.tpu'])
def test_other_names_are_no_constructs(path):
    assert construct_of(path) is None


@pytest.mark.parametrize('kind', ['TPUConfig', 'RunConfig', 'TPUEstimator', 'TPUEstimatorSpec'])
def test_positions_are_those_of_the_class(kind):
    names = tuple(inspect.signature(getattr(ete, kind)).parameters)
    positions = constructs.POSITIONS[kind]
    assert names[:len(positions)] == positions


def arguments(source):
    facts = scanned(f'from tensorflow.contrib import tpu\n{source}').facts
    return next(fact.values['arguments'] for fact in facts if fact.kind == 'TPUConfig')


@pytest.mark.parametrize('written, value', [
    ('8', 8), ('2 * 8', UNREAD), ('None', None), ('FLAGS.n', Flag('n', 'FLAGS.n')),
    ('args.n', Flag('n', 'args.n')), ('self.n', UNREAD), ('n()', UNREAD), ('unknown', UNREAD)])
def test_values_are_read_only_where_the_source_shows_them(written, value):
    assert arguments(f'tpu.TPUConfig(num_shards={written})') == {'num_shards': value}


@pytest.mark.parametrize('before, value', [
    ('n = 8', 8), ('m = 4\nn = m', UNREAD), ('n: int = 8', 8), ('n = 8\nn = 9', UNREAD),
    ('n = 8\nn += 1', UNREAD), ('n = 8\ndef f(n): pass', UNREAD), ('from x import n', UNREAD),
    ('for n in range(8): pass', UNREAD), ('n = n', UNREAD), ('n = 8\nglobal n', UNREAD)])
def test_a_name_has_a_value_if_it_is_assigned_once(before, value):
    assert arguments(f'{before}\ntpu.TPUConfig(2, n)')['num_shards'] == value


def test_every_emulated_construct_is_said_once_per_place():
    file = scanned('''
        import tensorflow as tf
        config = tf.contrib.tpu.TPUConfig(iterations_per_loop=100, tpu_job_name=None)
        class Mine(tf.contrib.tpu.TPUEstimator):
            pass
        def input_fn(params):
            return params['context'].num_hosts
        ''')
    told = [(each.place.line, each.place.column, each.written)
            for each in traps.emulated([file], True)]
    assert told == [(3, 10, 'tf.contrib.tpu.TPUConfig'),
                    (4, 12, 'tf.contrib.tpu.TPUEstimator'), (7, 12, "params['context']")]


def test_operations_of_a_feed_are_errors():
    file = scanned('from tensorflow.python.tpu.ops import tpu_ops\n'
                   'x = tpu_ops.infeed_dequeue(t, [2])\n')
    finding, = traps.emulated([file], True)
    assert finding.code == 'E104' and 'E925' in finding.message


@pytest.mark.parametrize('needs_tf1', [False, True])
def test_replicas_need_a_graph_that_tf1_has_anyway(needs_tf1):
    file = scanned('import tensorflow.compat.v1 as tf\ntf.tpu.rewrite(step)\n')
    finding, = traps.emulated([file], needs_tf1)
    assert ('E917' in finding.message) is not needs_tf1


def test_a_name_of_two_roads_is_the_first_construct():
    file = scanned('''
        try:
            from tensorflow.contrib import tpu
        except ImportError:
            from tensorflow.compat.v1.estimator import tpu
        config = tpu.TPUConfig(num_shards=8)
        ''')
    finding, = traps.emulated([file], True)
    assert finding.subject == 'tensorflow.contrib.tpu.TPUConfig'


@pytest.mark.parametrize('source', [
    'from tensorflow.contrib.tpu import TPUConfig as Config\nConfig()',
    'import tensorflow as tf\nConfig = tf.contrib.tpu.TPUConfig\nConfig()'])
def test_a_construct_under_another_name_is_known(source):
    assert [fact.place.line for fact in scanned(source).facts
            if fact.kind == 'TPUConfig' and fact.values['is_call']] == [source.count('\n') + 1]


def test_a_deep_chain_is_no_error():
    assert scanned('x = y' + '.y' * 500 + '\n').facts == []
