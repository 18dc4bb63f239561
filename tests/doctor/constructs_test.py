"""Constructs are known by every road that they ever had, and nothing else is taken for one."""

import inspect

import pytest
from harness.doctored import scanned

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.doctor import traps
from estimator_tpu_embedding.doctor.traps import UNREAD, Flag, construct_of


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
    ('tensorflow.contrib.tpu.RunConfig', 'RunConfig'),
    ('estimator_tpu_embedding.RunConfig', 'RunConfig'),
    ('tensorflow.compat.v1.tpu.shard', 'shard'),
    ('tensorflow.python.tpu.tpu.shard', 'shard'),
    ('tensorflow.tpu.experimental.embedding_column', 'embedding_column'),
    ('tensorflow.python.tpu.feature_column_v2.embedding_column_v2', 'embedding_column'),
    ('tensorflow.python.tpu.tpu_embedding.TPUEmbedding', 'TPUEmbedding'),
    ('tensorflow.raw_ops.InfeedDequeueTuple', 'feed operation'),
    ('tensorflow.python.tpu.ops.tpu_ops.outfeed_enqueue', 'feed operation')])
def test_names_that_several_things_have_need_a_module_of_a_tpu(path, kind):
    assert construct_of(path) == kind


@pytest.mark.parametrize('path', [
    'tensorflow.estimator.RunConfig', 'tensorflow.data.Dataset.shard', 'tensorflow.while_loop',
    'tensorflow.feature_column.embedding_column', 'tensorflow.keras.Model.compile', 'tensorflow',
    'mine.TPUConfig', 'TPUConfig', '', 'tensorflow.tpu',
    'tensorflow.tpu.experimental.embedding.TPUEmbedding',
    'tensorflow.python.tpu.tpu_embedding_v2.TPUEmbedding'])
def test_other_names_are_no_constructs(path):
    assert construct_of(path) is None


@pytest.mark.parametrize('kind', ['TPUConfig', 'TPUEstimator'])
def test_positions_are_those_of_the_class(kind):
    names = tuple(inspect.signature(getattr(ete, kind)).parameters)
    positions = traps.POSITIONS[kind]
    assert names[:len(positions)] == positions


def arguments(source):
    facts = scanned(f'from tensorflow.contrib import tpu\n{source}').facts
    return next(fact.values['arguments'] for fact in facts if fact.kind == 'TPUConfig')


@pytest.mark.parametrize('written, value', [
    ('8', 8), ('2 * 8', UNREAD), ('None', None), ('FLAGS.n', Flag('n', 'FLAGS.n')),
    ('args.n', Flag('n', 'args.n')), ('self.n', UNREAD), ('n()', UNREAD), ('unknown', UNREAD)])
def test_values_are_read_only_where_the_source_shows_them(written, value):
    assert arguments(f'tpu.TPUConfig(num_shards={written})') == {'num_shards': value}


def test_operations_of_a_feed_are_errors():
    file = scanned('from tensorflow.python.tpu.ops import tpu_ops\n'
                   'x = tpu_ops.infeed_dequeue(t, [2])\n')
    finding, = traps.findings_of([file])
    assert finding.code == 'E104' and 'E925' in finding.message


@pytest.mark.parametrize('source', [
    'from tensorflow.contrib.tpu import TPUConfig as Config\nConfig()',
    'import tensorflow as tf\nConfig = tf.contrib.tpu.TPUConfig\nConfig()'])
def test_a_construct_under_another_name_is_known(source):
    assert [fact.place.line for fact in scanned(source).facts
            if fact.kind == 'TPUConfig'] == [source.count('\n') + 1]


def test_a_deep_chain_is_no_error():
    assert scanned('x = y' + '.y' * 500 + '\n').facts == []
