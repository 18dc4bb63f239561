"""What configs of strangers and Python objects declare, and what a maintainer is told."""

import ast
import pathlib

import pytest
import tensorflow as tf
from google.protobuf import text_format
from harness.migrated_sources import run
from hypothesis import example, given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.core.optimizers import UNDOCUMENTED, Adagrad
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.errors import ConfigError, UnsupportedError
from estimator_tpu_embedding.estimator import optimizer_parameters as parameters
from estimator_tpu_embedding.estimator.embedding_spec import EmbeddingConfigSpec
from estimator_tpu_embedding.estimator.table_config import DeviceConfig, FeatureConfig, TableConfig
from estimator_tpu_embedding.estimator.tpu_embedding import TRAINING, TPUEmbedding
from estimator_tpu_embedding.migration import declaration_text
from estimator_tpu_embedding.migration.job_declaration import Declaration, of_config, of_object
from estimator_tpu_embedding.proto.codec import Config

v1 = tf.compat.v1
GOLDEN = pathlib.Path(__file__).parents[1] / 'golden' / 'configs'


def config(name='Adagrad_defaults'):
    """Tables `item` and `user`, where two features look up in `user`."""
    return text_format.Parse((GOLDEN / f'{name}.pbtxt').read_text(), Config())


def written(one, target='tf2', others=()):
    return declaration_text.written(of_config(one, 'a config', others), target)


def tables_and_features(one):
    made = run(written(one).text, tf=tf)
    return made.TABLES, made.FEATURES


def told(one, code, **arguments):
    return [str(note) for note in written(one, **arguments).notes if note.code == code]


def test_features_without_names_are_called_after_their_tables():
    one = config()
    one.table_descriptor[0].name = 'tbl_item'
    _, features = tables_and_features(one)
    assert {name: feature.table.name for name, feature in features.items()} == {
        'item': 'tbl_item', 'user_1': 'user', 'user_2': 'user'}
    assert {feature.name for feature in features.values()} == {None}
    assert 'The config has no names of 3 features.' in ' '.join(told(one, ''))


def test_names_that_are_made_avoid_those_that_are_there():
    one = config()
    one.feature_descriptor[1].name = 'item'  # of table user
    _, features = tables_and_features(one)
    assert {name: (feature.table.name, feature.name) for name, feature in features.items()} == {
        'item_': ('item', None), 'item': ('user', 'item'), 'user': ('user', None)}


@pytest.mark.parametrize('field', sorted(UNDOCUMENTED))
def test_an_optimizer_without_a_formula_is_refused(field):
    one = config()
    getattr(one.table_descriptor[0].optimization_parameters, field).SetInParent()
    with pytest.raises(UnsupportedError, match=f'E918 table "item": .*got {field}'):
        written(one)


def test_a_config_of_tensorflow_2_3_lists_no_features():
    one = config()
    del one.feature_descriptor[:]
    one.batch_size_per_tensor_core = 16
    one.table_descriptor[1].num_features = 2
    made = written(one)
    assert 'BATCH_SIZE_PER_REPLICA = 16' in made.text
    _, features = tables_and_features(one)
    assert sorted(features) == ['item', 'user']
    assert 'of TensorFlow 2.3 or older, does not list its features' in ' '.join(told(one, ''))


def test_another_batch_size_of_the_evaluation_is_told():
    other = config('Adagrad_inference')
    assert not [text for text in told(config(), 'E671', others=[other]) if 'batch' in text]
    for feature in other.feature_descriptor:
        feature.input_shape[0] = 2
    assert told(config(), 'E671', others=[other]) == [
        'Evaluation or prediction has 2 samples per core and training 4, but TPUEmbedding of TF2 '
        'has one batch size. Give both the same size.']


def test_a_config_of_inference_has_no_optimizers_of_its_own():
    assert 'The config is of a job that trains nothing' in ' '.join(
        told(config('census_inference_4x2'), ''))


def test_a_config_that_is_no_plan_is_refused_with_all_reasons():
    one = config()
    one.table_descriptor[0].vocabulary_size = 0
    one.spmd_sharding.enabled = True
    one.table_descriptor.add(name='a\nb', vocabulary_size=1, dimension=1)
    with pytest.raises(ConfigError) as caught:
        written(one)
    assert {'E403', 'E412'} <= {problem.code for problem in caught.value.problems}


NAMES = st.text(min_size=1, max_size=12)
CODE = {'tf', 'api', 'BATCH_SIZE', 'BATCH_SIZE_PER_REPLICA', 'OPTIMIZER', 'TABLES', 'FEATURES'}


@settings(deadline=None, max_examples=100)
@given(st.lists(NAMES, min_size=2, max_size=2, unique=True), NAMES, NAMES)
@example(['\ud800"""\\', "'}; import os #"], '\u202e\n\r\x0c\u2028#', '"""\n1/0')
def test_no_name_becomes_code(tables, feature, place):
    """Also names that no job may have: those of files are checked before."""
    declaration = Declaration(
        where=place, profile_directory=place, multiplier='',
        tables=tuple(TableSpec(
            name=name, vocabulary_size=9, dimension=2, hot_id_replication=True,
            optimizer=Adagrad(learning_rate=.1)) for name in tables),
        features=tuple(FeatureSpec(name=name, table=table, weight_feature=place)
                       for name, table in ((feature, tables[0]), (feature + "'", tables[1]))))
    text = declaration_text.written(declaration, 'tf2').text
    assert text.encode().decode() == text
    assert {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} <= CODE
    made = run(text, tf=tf)
    assert sorted(made.TABLES) == sorted(tables)


def spec(**arguments):
    """A spec by dicts of two tables, one of which two features share."""
    return EmbeddingConfigSpec(**{
        'table_to_config_dict': {
            'video': TableConfig(22, 4, combiner='sqrtn',
                                 initializer=v1.random_uniform_initializer(-.5, .5)),
            'user': TableConfig(9, 2, combiner='sum', learning_rate=.5)},
        'feature_to_config_dict': {
            'last': FeatureConfig('video'),
            'watched': FeatureConfig('video', max_sequence_length=3),
            'viewer': FeatureConfig('user', weight_key='viewer_weight')},
        'optimization_parameters': parameters.AdamParameters(.1), **arguments})


def source(value, target='tf2'):
    return declaration_text.written(of_object(value, 'a test'), target).text


def notes_of(value):
    return '\n'.join(map(str, declaration_text.written(of_object(value, 'a test'), 'tf2').notes))


def tf2_of(value):
    """The FeatureConfigs and the optimizer of the source for TF2 of an object."""
    made = run(source(value), tf=tf)
    return made.FEATURES, made.OPTIMIZER


def test_a_spec_keeps_its_names_combiners_initializers_and_rates_in_tf2():
    features, optimizer = tf2_of(spec())
    assert sorted(features) == ['last', 'viewer', 'watched']
    video, user = features['watched'].table, features['viewer'].table
    assert features['last'].table is video and features['watched'].max_sequence_length == 3
    assert (video.name, video.combiner) == ('video', 'sqrtn')
    assert (user.name, user.combiner) == ('user', 'sum')
    assert video.initializer.get_config() == {
        'minval': -.5, 'maxval': .5, 'seed': None}
    assert user.initializer.stddev == pytest.approx(2 ** -.5)  # the default of both
    assert (optimizer.learning_rate, optimizer.epsilon) == (.1, 1e-8)  # not the 1e-7 of TF2
    assert (user.optimizer.learning_rate, user.optimizer.epsilon) == (.5, 1e-8)


def test_columns_are_tables_and_features_by_their_keys():
    column = v1.feature_column
    words = column.categorical_column_with_vocabulary_list('country', ['de', 'fr'])
    plain = column.categorical_column_with_identity('user', 10)
    columns = [v1.tpu.experimental.embedding_column(
        one, 4, combiner='sum', use_safe_embedding_lookup=False) for one in (words, plain)]
    one = EmbeddingConfigSpec(feature_columns=columns, clipping_limit=1., partition_strategy='mod',
                              optimization_parameters=parameters.AdagradParameters(.1, .2))
    features, optimizer = tf2_of(one)
    assert {key: feature.table.name for key, feature in features.items()} == {
        'country': 'tbl_country', 'user': 'tbl_user'}
    assert features['user'].validate_weights_and_indices is False
    assert optimizer.initial_accumulator_value == .2
    told = notes_of(one)
    for part in ('feature "country" map words to ids', 'clipping_limit=1.0', 'order of mod',
                 'takes 0 for a missing id'):
        assert part in told


def test_columns_that_share_a_table_do_so_in_tf2():
    identity = v1.feature_column.categorical_column_with_identity
    watched, last = v1.tpu.experimental.shared_embedding_columns(
        [identity(name, 10) for name in ('watched', 'last')], 4, combiner='sum')
    on_core = v1.tpu.experimental.embedding_column(
        identity('user', 10), 4, embedding_lookup_device='tpu_tensor_core',
        tensor_core_shape=[None, 3])
    one = EmbeddingConfigSpec(feature_columns=[watched, last, on_core],
                              optimization_parameters=parameters.AdagradParameters(.1))
    features, _ = tf2_of(one)
    assert features['watched'].table is features['last'].table and len(features) == 2
    assert 'The columns of feature "user" look up on the tensor core' in notes_of(one)
    with pytest.raises(ConfigError, match='E402 a test: at least one table is needed'):
        source(EmbeddingConfigSpec(
            feature_columns=[on_core], optimization_parameters=parameters.AdagradParameters(.1)))


def ramp(step):
    return .5


def test_functions_are_named_where_they_were_and_wait_to_be_written():
    tables = {'video': TableConfig(22, 4, learning_rate_fn=ramp, initializer=ramp)}
    one = spec(table_to_config_dict=tables, feature_to_config_dict={
        'watched': FeatureConfig('video')}, experimental_gradient_multiplier_fn=ramp)
    for part in (f'function of the step ({__name__}.ramp)', 'Its initializer cannot be written as '
                 'source', f'(experimental_gradient_multiplier_fn, {__name__}.ramp)'):
        assert part in notes_of(one)


def test_a_legacy_embedding_knows_its_batch_too():
    embedding = TPUEmbedding(
        {'video': TableConfig(22, 4)}, {'watched': FeatureConfig('video')}, batch_size=16,
        mode=TRAINING, optimization_parameters=parameters.AdagradParameters(.1),
        device_config=DeviceConfig(num_hosts=2, num_cores=4, job_name='/job:worker'))
    made = run(source(embedding), tf=tf)
    assert (made.BATCH_SIZE, made.BATCH_SIZE_PER_REPLICA) == (16, 4)
    assert source(embedding) == source(embedding.plan)
    assert 'num_tensor_cores: 4' in source(embedding, 'textproto')


def test_what_is_wrong_in_a_declaration_is_told_at_once():
    with pytest.raises(ConfigError) as caught:
        of_object(spec(feature_to_config_dict={'a': FeatureConfig('../x')},
                       table_to_config_dict={'../x': TableConfig(9, 2)}), 'a test')
    assert 'E403' in {problem.code for problem in caught.value.problems}


def test_what_no_config_holds_is_told():
    one = of_object(spec(experimental_gradient_multiplier_fn=ramp), 'a test')
    made = declaration_text.written(
        one.sized(8, Topology(num_hosts=1, cores_per_host=2)), 'textproto')
    note, = made.notes
    assert note.code == 'E671' and 'no function that multiplies gradients' in note.fact
    assert made.text.startswith('# job: A config has no function that multiplies gradients')
    assert text_format.Parse(made.text, Config()).num_tensor_cores == 2


def test_first_values_of_ftrl_that_tf2_does_not_take_are_told():
    one = spec(optimization_parameters=parameters.FtrlParameters(.1, initial_accumulator_value=0.))
    assert 'Its FTRL accumulators begin at 0' in notes_of(one)
    assert tf2_of(one)[1].initial_accumulator_value == .1
