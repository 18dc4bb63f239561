"""Each trap is told at its place, with its numbers; a script that is right gets no line.

Constructs are known by every path that they ever had, and nothing else is taken for one.
"""

import inspect

import pytest
from harness.doctored import scanned

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.doctor import tpu_calls, traps
from estimator_tpu_embedding.doctor.findings import Place
from estimator_tpu_embedding.doctor.tpu_calls import UNREAD, Flag

HEAD = '''
import tensorflow.compat.v1 as tf
from tensorflow.contrib import tpu as contrib_tpu
from tensorflow.python.tpu import tpu_estimator
flags = tf.flags
FLAGS = flags.FLAGS
'''


def found(source, *codes, **files):
    """Returns (code, line, message) of the findings of these codes, lines after HEAD from 1."""
    all_files = [scanned(HEAD + source), *[
        scanned(HEAD + text, f'{name}.py') for name, text in files.items()]]
    all_files[0].imports.update({f'{name}.py': Place('train.py', 1) for name in files})
    offset = HEAD.count('\n')
    return [(each.code, each.place.line - offset, each.message)
            for each in traps.findings_of(all_files) if each.code in codes]


SPEC = '''spec = tpu_estimator.EmbeddingConfigSpec(
    feature_columns=[], optimization_parameters=tf.tpu.experimental.AdagradParameters(.1))
'''
MOD = SPEC.replace('feature_columns=[]', "feature_columns=[], partition_strategy='mod'")
COLUMN = 'tf.tpu.experimental.embedding_column(each, dimension=4, learning_rate_fn={})'
TRAIN = '''
def model_fn(features, labels, mode, params):
  train_op = tf.train.AdamOptimizer(.1).minimize(loss)
  return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
'''
PLAIN = TRAIN + 'tf.estimator.tpu.TPUEstimator(model_fn)\n'
BATCHES = '''config = contrib_tpu.TPUConfig(2, num_shards={}, per_host_input_for_training=(
    contrib_tpu.InputPipelineConfig.{}))
def input_fn(params):
  return rows.repeat().batch({}, drop_remainder=True)
'''


@pytest.mark.parametrize('code, line, source, words', [
    ('W211', 6, SPEC + '''
opt = tf.train.AdamOptimizer(.1)
contrib_tpu.TPUEstimator(model_fn, config=config,
                         use_tpu=False, embedding_config_spec=spec)
''', ['the optimizer of model_fn trains the embedding tables', 'set use_tpu=True']),
    ('W211', 4, "flags.DEFINE_bool('use_tpu', False, 'Use it.')\n" + SPEC
     + 'tf.estimator.tpu.TPUEstimator(model_fn, use_tpu=FLAGS.use_tpu)\n',
     ['use_tpu is False, the default of FLAGS.use_tpu (train.py:7)', 'give --use_tpu']),
    ('W211', 4, "parser.add_argument('--use_tpu', action='store_true')\n" + SPEC
     + 'contrib_tpu.TPUEstimator(model_fn, use_tpu=args.use_tpu)\n', ['give --use_tpu']),
    ('W212', 2, MOD + '''contrib_tpu.TPUEstimator(f, FLAGS.model_dir)
tf.train.load_variable(FLAGS.model_dir, 'rows')''', ['tf.train.load_variable (train.py:10)']),
    ('W213', 1, f'columns = [{COLUMN.format("lambda step: .1")} for each in ids]',
     ['the rate is the same']),
    ('W213', 2, 'for each in ids:\n'
     f'  columns.append({COLUMN.format("functools.partial(decay, .1)")})',
     ['the rate is the same']),
    ('W213', 1, f'a = {COLUMN.format("lambda step: .1")}\nb = {COLUMN.format("lambda step: .1")}',
     ['the rate is the same']),
    ('W214', 3, TRAIN + 'tf.estimator.tpu.TPUEstimator(model_fn, train_batch_size=8)',
     ['On one core that changes nothing']),
    ('W214', 3, TRAIN + '''
config = tf.estimator.tpu.TPUConfig(num_shards=8)
tf.estimator.tpu.TPUEstimator(model_fn, train_batch_size=8)''',
     ['num_shards is 8 (train.py:12), so training ends with a ValueError']),
    ('W215', 3, '''flags.DEFINE_integer('cores', 8, 'Cores.')
config = contrib_tpu.TPUConfig(100, num_shards=FLAGS.cores)
contrib_tpu.TPUEstimator(f, train_batch_size=100)''',
     ['train_batch_size is 100, and num_shards is 8, the default of FLAGS.cores',
      '100 = 12 x 8 + 4', 'E411']),
    ('W220', 4, BATCHES.format(8, 'PER_HOST_V2', 64),
     ['num_shards is 8 (train.py:7): the global batch is 8 times as large',
      "params['batch_size']"])])
def test_a_trap_is_told_at_its_place_with_its_numbers(code, line, source, words):
    (_, place, message), = found(source, code)
    assert (place, [one for one in words if one not in message]) == (line, [])


def test_columns_and_sums_of_other_files_count():
    assert found('contrib_tpu.TPUEstimator(f, use_tpu=False)', 'W211', columns='''
column = tf.tpu.experimental.embedding_column(ids, dimension=4)''')
    assert not found(PLAIN, 'W214', optimization='from wrappers import CrossShardOptimizer')


@pytest.mark.parametrize('code, source', [
    ('W211', SPEC + 'contrib_tpu.TPUEstimator(f, use_tpu=True, embedding_config_spec=spec)'),
    ('W211', SPEC + 'contrib_tpu.TPUEstimator(f, embedding_config_spec=spec)'),
    ('W211', SPEC + 'contrib_tpu.TPUEstimator(f, use_tpu=on_tpu(), embedding_config_spec=spec)'),
    ('W211', SPEC + 'contrib_tpu.TPUEstimator(f, use_tpu=FLAGS.use_tpu)'),
    ('W211', "parser.add_argument('--no_tpu', action='store_false', dest='use_tpu')\n" + SPEC
     + 'contrib_tpu.TPUEstimator(f, use_tpu=args.use_tpu)'),
    ('W211', 'contrib_tpu.TPUEstimator(f, use_tpu=False)'),
    ('W212', MOD + 'contrib_tpu.TPUEstimator(f)'),
    ('W212', MOD + 'contrib_tpu.TPUEstimator(f, FLAGS.model_dir)\n'
     "tf.train.load_variable(FLAGS.bert, 'w')"),
    ('W213', f'columns = [{COLUMN.format("lambda step, rate=rate: rate")} for each, rate in ids]'),
    ('W213', f'columns = [{COLUMN.format("rate")} for each in ids]'),
    ('W213', f'def column(each, rate):\n  return {COLUMN.format("lambda step: rate")}'),
    ('W213', f'a = {COLUMN.format("lambda step: .1")}\nb = {COLUMN.format("lambda step: .2")}'),
    ('W214', PLAIN + 'def f(x): return contrib_tpu.CrossShardOptimizer(x)'),
    ('W214', PLAIN + 'total = tf.tpu.cross_replica_sum(x)'),
    ('W214', PLAIN + 'contrib_tpu.TPUConfig(num_shards=1)'),
    ('W214', TRAIN + 'contrib_tpu.TPUEstimator(model_fn, use_tpu=False)'),
    ('W215', 'contrib_tpu.TPUConfig(num_shards=8)\n'
     'contrib_tpu.TPUEstimator(f, train_batch_size=64)'),
    ('W215', 'contrib_tpu.TPUConfig()\ncontrib_tpu.TPUEstimator(f, train_batch_size=63)'),
    ('W215', 'contrib_tpu.TPUConfig(num_shards=n)\n'
     'contrib_tpu.TPUEstimator(f, train_batch_size=63)'),
    ('W215', '''contrib_tpu.TPUConfig(num_shards=8, per_host_input_for_training=(
    contrib_tpu.InputPipelineConfig.BROADCAST))
contrib_tpu.TPUEstimator(f, train_batch_size=63)'''),
    ('W215', '''contrib_tpu.TPUConfig(num_shards=8)
contrib_tpu.TPUEstimator(f, use_tpu=False, train_batch_size=63)'''),
    ('W220', BATCHES.format(8, 'PER_HOST_V1', 64)),
    ('W220', BATCHES.format(1, 'PER_HOST_V2', 64)),
    ('W220', BATCHES.format(8, 'PER_HOST_V2', "params['batch_size']")),
    ('W220', BATCHES.format(8, 'PER_HOST_V2', 64).replace('(params)', '()'))])
def test_what_is_right_or_unknown_is_no_finding(code, source):
    assert not found(source, code)


@pytest.mark.parametrize('path, kind', [
    ('tensorflow.contrib.tpu.TPUConfig', 'TPUConfig'),
    ('tensorflow.compat.v1.estimator.tpu.TPUConfig', 'TPUConfig'),
    ('tensorflow.python.tpu.tpu_config.TPUConfig', 'TPUConfig'),
    ('estimator_tpu_embedding.TPUConfig', 'TPUConfig'),
    ('tensorflow_estimator.python.estimator.tpu.tpu_config.TPUConfig', 'TPUConfig'),
    ('tensorflow.contrib.tpu.RunConfig', 'RunConfig'),
    ('estimator_tpu_embedding.RunConfig', 'RunConfig'),
    ('tensorflow.python.tpu.tpu.shard', 'shard'),
    ('tensorflow.python.tpu.feature_column_v2.embedding_column_v2', 'embedding_column'),
    ('tensorflow.python.tpu.tpu_embedding.TPUEmbedding', 'TPUEmbedding'),
    ('tensorflow.raw_ops.InfeedDequeueTuple', 'feed operation'),
    ('tensorflow.python.tpu.ops.tpu_ops.outfeed_enqueue', 'feed operation'),
    ('tensorflow.estimator.RunConfig', None), ('tensorflow.data.Dataset.shard', None),
    ('tensorflow.feature_column.embedding_column', None), ('tensorflow', None),
    ('mine.TPUConfig', None), ('', None),
    ('tensorflow.tpu.experimental.embedding.TPUEmbedding', None)])
def test_every_path_leads_to_one_name_and_no_other_thing_has_it(path, kind):
    assert tpu_calls.construct_of(path) == kind


@pytest.mark.parametrize('kind', ['TPUConfig', 'TPUEstimator'])
def test_positions_are_those_of_the_class(kind):
    names = tuple(inspect.signature(getattr(ete, kind)).parameters)
    positions = tpu_calls.POSITIONS[kind]
    assert names[:len(positions)] == positions


def arguments(source):
    facts = scanned(f'from tensorflow.contrib import tpu\n{source}').facts
    return next(fact.values['arguments'] for fact in facts if fact.kind == 'TPUConfig')


@pytest.mark.parametrize('written, value', [
    ('8', 8), ('2 * 8', UNREAD), ('None', None), ('n()', UNREAD), ('n', UNREAD),
    ('FLAGS.n', Flag('n', 'FLAGS.n')), ('self.n', UNREAD)])
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
