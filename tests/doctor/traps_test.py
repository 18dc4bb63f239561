"""Each trap is told at its place, with its numbers; a script that is right gets no line."""

import pytest
from harness.doctored import scanned

from estimator_tpu_embedding.doctor import traps
from estimator_tpu_embedding.doctor.facts import Place, Question, Use
from estimator_tpu_embedding.doctor.verdicts import Flags

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
            for each in (*traps.findings_of(all_files, {}), *all_files[0].problems)
            if each.code in codes]


def only(findings):
    assert len(findings) == 1, findings
    return findings[0]


SPEC = '''spec = tpu_estimator.EmbeddingConfigSpec(
    feature_columns=[], optimization_parameters=tf.tpu.experimental.AdagradParameters(.1))
'''


def test_use_tpu_false_lets_another_optimizer_train_the_tables():
    code, line, message = only(found(SPEC + '''
opt = tf.train.AdamOptimizer(.1)
contrib_tpu.TPUEstimator(model_fn, config=config,
                         use_tpu=False, embedding_config_spec=spec)
''', 'W211'))
    assert line == 6
    assert 'the optimizer of model_fn trains the embedding tables' in message
    assert 'set use_tpu=True' in message


def test_use_tpu_of_a_flag_names_its_default():
    code, line, message = only(found('''flags.DEFINE_bool('use_tpu', False, 'Use it.')
''' + SPEC + 'tf.estimator.tpu.TPUEstimator(model_fn, use_tpu=FLAGS.use_tpu)\n', 'W211'))
    assert line == 4
    assert 'use_tpu is False, the default of FLAGS.use_tpu (train.py:7)' in message
    assert 'give --use_tpu' in message


@pytest.mark.parametrize('call', [
    'contrib_tpu.TPUEstimator(f, use_tpu=True, embedding_config_spec=spec)',
    'contrib_tpu.TPUEstimator(f, embedding_config_spec=spec)',
    'contrib_tpu.TPUEstimator(f, use_tpu=on_tpu(), embedding_config_spec=spec)',
    'contrib_tpu.TPUEstimator(f, use_tpu=FLAGS.use_tpu, embedding_config_spec=spec)'])
def test_use_tpu_that_is_true_or_unknown_is_no_finding(call):
    assert not found(SPEC + call, 'W211')


def test_use_tpu_false_without_tables_is_no_finding():
    assert not found('contrib_tpu.TPUEstimator(f, use_tpu=False)', 'W211')


def test_use_tpu_false_is_found_where_another_file_has_the_columns():
    assert found('contrib_tpu.TPUEstimator(f, use_tpu=False)', 'W211', columns='''
column = tf.tpu.experimental.embedding_column(ids, dimension=4)''')


MOD = SPEC.replace('feature_columns=[]', "feature_columns=[], partition_strategy='mod'")


@pytest.mark.parametrize('argument', ['use_tpu', 'eval_on_tpu'])
def test_mod_without_a_tpu_is_refused(argument):
    code, line, message = only(found(
        f'{MOD}contrib_tpu.TPUEstimator(f, {argument}=False)', 'W212'))
    assert line == 2 and f'with {argument}=False (train.py:9)' in message


def test_mod_rows_that_a_reader_takes_as_they_are_stored():
    code, line, message = only(found(MOD + '''contrib_tpu.TPUEstimator(f, FLAGS.model_dir)
tf.train.load_variable(FLAGS.model_dir, 'rows')''', 'W212'))
    assert line == 2 and 'tf.train.load_variable (train.py:10)' in message


@pytest.mark.parametrize('rest', [
    'contrib_tpu.TPUEstimator(f)',
    "contrib_tpu.TPUEstimator(f, FLAGS.model_dir); tf.train.load_variable(FLAGS.bert, 'w')"])
def test_mod_alone_is_no_finding(rest):
    assert not found(MOD + rest, 'W212')


COLUMN = 'tf.tpu.experimental.embedding_column(each, dimension=4, learning_rate_fn={})'


@pytest.mark.parametrize('source', [
    f'columns = [{COLUMN.format("lambda step: .1")} for each in ids]',
    f'for each in ids:\n  columns.append({COLUMN.format("functools.partial(decay, .1)")})',
    f'''def column(each):
  return {COLUMN.format("lambda step: .1")}
a = column(one)
b = column(other)''',
    f'a = {COLUMN.format("lambda step: .1")}\nb = {COLUMN.format("lambda step: .1")}',
    'for each in ids:\n  rates.append(tf.tpu.experimental.embedding.Adagrad(lambda: .1))'.replace(
        '(lambda', '(learning_rate=lambda')])
def test_a_function_per_table_with_the_same_rate(source):
    code, line, message = only(found(source, 'W213'))
    assert 'the rate is the same' in message


@pytest.mark.parametrize('source', [
    f'columns = [{COLUMN.format("lambda step, rate=rate: rate")} for each, rate in ids]',
    f'columns = [{COLUMN.format("rate")} for each in ids]',
    f'''def column(each, rate):
  return {COLUMN.format("lambda step: rate")}
a = column(one, .1)
b = column(other, .2)''',
    f'a = {COLUMN.format("lambda step: .1")}\nb = {COLUMN.format("lambda step: .2")}',
    'for each in ids:\n  build(learning_rate_fn=lambda step: .1)'])
def test_functions_of_different_rates_or_one_function_are_no_finding(source):
    assert not found(source, 'W213')


TRAIN = '''
def model_fn(features, labels, mode, params):
  train_op = tf.train.AdamOptimizer(.1).minimize(loss)
  return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
'''


def test_no_sum_over_cores():
    code, line, message = only(found(
        TRAIN + 'tf.estimator.tpu.TPUEstimator(model_fn, train_batch_size=8)', 'W214'))
    assert line == 3 and 'On one core that changes nothing' in message


def test_no_sum_over_cores_of_a_stated_number():
    code, line, message = only(found(TRAIN + '''
config = tf.estimator.tpu.TPUConfig(num_shards=8)
tf.estimator.tpu.TPUEstimator(model_fn, train_batch_size=8)''', 'W214'))
    assert 'num_shards is 8 (train.py:12), so training ends with a ValueError' in message


@pytest.mark.parametrize('rest', [
    'def f(x): return contrib_tpu.CrossShardOptimizer(x)',
    'total = tf.tpu.cross_replica_sum(x)',
    'contrib_tpu.TPUConfig(num_shards=1)'])
def test_a_sum_over_cores_anywhere_or_one_core_is_no_finding(rest):
    assert not found(f'{TRAIN}tf.estimator.tpu.TPUEstimator(model_fn)\n{rest}', 'W214')


def test_a_sum_in_another_file_is_no_finding():
    assert not found(TRAIN + 'tf.estimator.tpu.TPUEstimator(model_fn)', 'W214',
                     optimization='from wrappers import CrossShardOptimizer')


def test_plain_training_needs_no_sum():
    assert not found(TRAIN + 'contrib_tpu.TPUEstimator(model_fn, use_tpu=False)', 'W214')


def test_a_batch_that_the_cores_do_not_divide():
    code, line, message = only(found('''flags.DEFINE_integer('cores', 8, 'Cores.')
config = contrib_tpu.TPUConfig(100, num_shards=FLAGS.cores)
BATCH = 100
contrib_tpu.TPUEstimator(f, train_batch_size=BATCH, eval_batch_size=9)''', 'W215'))
    assert line == 4
    assert 'train_batch_size is 100, and num_shards is 8, the default of FLAGS.cores' in message
    assert '100 = 12 x 8 + 4' in message and 'E411' in message


def test_the_batch_of_an_evaluation_counts_if_there_is_one():
    assert len(found('''config = contrib_tpu.TPUConfig(num_shards=8)
e = contrib_tpu.TPUEstimator(f, train_batch_size=64, eval_batch_size=9, predict_batch_size=9)
e.evaluate(input_fn)''', 'W215')) == 1


@pytest.mark.parametrize('source', [
    'contrib_tpu.TPUConfig(num_shards=8)\ncontrib_tpu.TPUEstimator(f, train_batch_size=64)',
    'contrib_tpu.TPUConfig()\ncontrib_tpu.TPUEstimator(f, train_batch_size=63)',
    'contrib_tpu.TPUConfig(num_shards=n)\ncontrib_tpu.TPUEstimator(f, train_batch_size=63)',
    '''contrib_tpu.TPUConfig(num_shards=8, per_host_input_for_training=(
    contrib_tpu.InputPipelineConfig.BROADCAST))
contrib_tpu.TPUEstimator(f, train_batch_size=63)''',
    '''contrib_tpu.TPUConfig(num_shards=8)
contrib_tpu.TPUEstimator(f, use_tpu=False, train_batch_size=63)'''])
def test_batches_that_fit_or_are_unknown_are_no_finding(source):
    assert not found(source, 'W215')


def test_the_input_mode_may_have_a_name_of_its_own():
    assert found('''mode = contrib_tpu.InputPipelineConfig.PER_HOST_V2
contrib_tpu.TPUConfig(num_shards=8, per_host_input_for_training=mode)
contrib_tpu.TPUEstimator(f, train_batch_size=63)''', 'W215')


def test_cores_that_fill_no_hosts():
    code, line, message = only(found('contrib_tpu.TPUConfig(num_shards=12)', 'W216'))
    assert '12 cores are no number of hosts with 8 each (E410)' in message
    assert '--hosts 2 --cores 6' in message


@pytest.mark.parametrize('source', [
    'contrib_tpu.TPUConfig(num_shards=4)', 'contrib_tpu.TPUConfig(num_shards=32)',
    'contrib_tpu.TPUConfig(num_shards=4, num_cores_per_replica=2)'])
def test_sizes_of_tpus_are_no_finding(source):
    assert not found(source, 'W216')


def of_tf1(source, flags):
    file = scanned(f'import tensorflow as tf\n{source}')
    return [(each.subject, each.place.line) for each in traps.findings_of([file], flags)
            if each.code == 'W218']


def test_an_argument_of_tensorflow_1_is_told_where_no_name_gives_it_away():
    assert of_tf1('x = tf.reduce_sum(y, 1, keep_dims=True)', {}) == [
        ('tensorflow.reduce_sum(keep_dims=)', 2)]


def test_with_tf1_such_arguments_are_there():
    place = Place('train.py', 1)
    needs = Flags([Use(place, Question('tensorflow', 'Session'), 'tf.Session')])
    assert not of_tf1('x = tf.reduce_sum(y, 1, keep_dims=True)', {'train.py': needs})


@pytest.mark.parametrize('source', [
    'tf.reduce_sum(y, 1, keepdims=True)', 'tf.compat.v1.reduce_sum(y, keep_dims=True)',
    'mine.reduce_sum(y, keep_dims=True)', 'tf.nn.conv2d(y, filters=w)',
    'try: tf.reduce_sum(y, keep_dims=True)\nexcept TypeError: pass',
    "if tf.__version__ < '2': tf.reduce_sum(y, keep_dims=True)"])
def test_arguments_of_today_are_no_finding(source):
    assert not of_tf1(source, {})


@pytest.mark.parametrize('source, today', [
    ("d = {'a': 1}\nif d.has_key('a'): pass", 'key in d'),
    ('for k, v in {1: 2}.iteritems(): pass', 'd.items()'),
    ('d = dict(a=1)\nfor k in d.iterkeys(): pass', 'd.keys()')])
def test_methods_that_dicts_lost(source, today):
    assert f'write {today}' in only(found(source, 'E122'))[2]


@pytest.mark.parametrize('source', [
    'def f(d): return d.iteritems()', 'd = Table()\nd.has_key(1)',
    'd = {}\nif six.PY2: d.iteritems()', 'd = {}\nd = Table()\nd.iteritems()',
    'd = {}\ntry: d.iteritems()\nexcept AttributeError: pass'])
def test_methods_of_other_objects_are_no_finding(source):
    assert not found(source, 'E122')
