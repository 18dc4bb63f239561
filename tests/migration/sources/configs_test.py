"""Configs of strangers: incomplete, odd or damaged ones, and what a maintainer is told."""

import ast
import pathlib

import pytest
from google.protobuf import text_format
from harness.migrated_sources import config_of_tf2, normal, run, run_tf1
from hypothesis import example, given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.core.optimizers import UNDOCUMENTED, Adagrad
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.migration.sources import configs, targets
from estimator_tpu_embedding.migration.sources.facts import Declaration, Feature, Table
from estimator_tpu_embedding.proto.codec import Config

GOLDEN = pathlib.Path(__file__).parents[2] / 'golden' / 'configs'


def config(name='Adagrad_defaults'):
    """Tables `item` and `user`, where two features look up in `user`."""
    return text_format.Parse((GOLDEN / f'{name}.pbtxt').read_text(), Config())


def written(one, target='tf2', others=()):
    return targets.written(
        configs.declaration_of(one, 'a config', others), target)


def tables_and_features(one):
    import tensorflow as tf
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
    one.feature_descriptor[2].name = 'item'
    tables, features = tables_and_features(one)
    assert {name: (feature.table.name, feature.name) for name, feature in features.items()} == {
        'item_': ('item', None), 'item': ('user', 'item'), 'item__': ('user', 'item')}


def test_names_that_differ_in_case_are_two():
    one = config()
    one.table_descriptor[0].name = 'USER'
    tables, features = tables_and_features(one)
    assert sorted(tables) == ['USER', 'user']
    assert sorted(features) == ['USER', 'user_1', 'user_2']


def test_a_table_without_a_feature_is_declared_and_told():
    one = config()
    one.table_descriptor.add(name='idle', vocabulary_size=3, dimension=2)
    assert 'idle' in tables_and_features(one)[0]
    assert told(one, 'E671') == [
        'No feature looks up in this table, and TF2 knows only tables of features.']


def test_an_optimizer_of_a_later_version_is_none_that_is_known():
    one = config()
    parameters = one.table_descriptor[0].optimization_parameters
    parameters.ClearField('adagrad')
    parameters.MergeFromString(b'\xaa\x06\x00')  # Field 101, an empty message.
    assert told(one, 'E672')[0].startswith('The config names no optimizer that this version knows')
    assert told(one, 'E671')[0].startswith('The config has fields that this version does not know')
    assert 'OPTIMIZER = None' in written(one).text


@pytest.mark.parametrize('field', sorted(UNDOCUMENTED))
@pytest.mark.parametrize('target', ['tf2', 'tf1'])
def test_an_optimizer_without_a_formula_is_no_hindrance(field, target):
    one = config()
    getattr(one.table_descriptor[0].optimization_parameters, field).SetInParent()
    (text,) = told(one, 'E672', target=target)
    assert f'has no optimizer like {field}.' in text


def test_a_config_of_tensorflow_2_3_lists_no_features():
    one = config()
    del one.feature_descriptor[:]
    one.batch_size_per_tensor_core = 16
    made = written(one)
    assert 'BATCH_SIZE_PER_REPLICA = 16' in made.text
    _, features = tables_and_features(one)
    assert sorted(features) == ['item', 'user']
    assert 'of TensorFlow 2.3, does not list its features' in ' '.join(told(one, ''))


def test_a_config_without_a_system_has_no_global_batch():
    one = config()
    one.num_hosts = 0
    assert 'BATCH_SIZE = None\nBATCH_SIZE_PER_REPLICA = 4\n' in written(one).text


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


def test_what_nothing_declares_is_told():
    one = config()
    one.spmd_sharding.enabled = True
    one.table_descriptor[0].optimization_parameters.hot_id_replication_configuration.status = 3
    assert [text.partition(' (')[0] for text in told(one, 'E671')] == [
        'The replication of hot ids has status 3, which no API sets.',
        'The config splits a replica over several cores']


def test_rows_that_tensorflow_may_have_added_are_told():
    assert 'The 2 rows of table "a" may be fewer' in ' '.join(told(config(
        'several_optimizers_2x2'), ''))


def test_everything_that_is_wrong_is_told_at_once():
    one = config()
    one.table_descriptor[0].vocabulary_size = 0
    one.table_descriptor[1].dimension = -4
    one.table_descriptor[1].optimization_parameters.learning_rate.constant = float('nan')
    one.table_descriptor.add(name='user', vocabulary_size=1, dimension=1)
    one.table_descriptor.add(name='a\nb', vocabulary_size=1, dimension=1)
    one.feature_descriptor[0].table_id = 9
    one.feature_descriptor[1].input_shape[0] = 0
    one.feature_descriptor[2].name = '..'
    with pytest.raises(ConfigError) as caught:
        written(one)
    assert {problem.code for problem in caught.value.problems} == {
        'E401', 'E403', 'E404', 'E412', 'E413', 'E421', 'E433'}
    with pytest.raises(ConfigError, match='E402 config: at least one table is needed'):
        written(Config(mode=Config.TRAINING))


NAMES = st.text(min_size=1, max_size=12)
CODE = {'tf', 'api', 'tpu_embedding', 'BATCH_SIZE', 'BATCH_SIZE_PER_REPLICA', 'TRAIN_BATCH_SIZE',
        'OPTIMIZER', 'OPTIMIZATION_PARAMETERS', 'TABLES', 'FEATURES', 'EMBEDDING_CONFIG_SPEC'}


@settings(deadline=None, max_examples=100)
@given(st.lists(NAMES, min_size=2, max_size=2, unique=True), NAMES, NAMES)
@example(['\ud800"""\\', "'}; import os #"], '\u202e\n\r\x0c\u2028#', '"""\n1/0')
def test_no_name_becomes_code(tables, feature, place):
    """Also names that no job may have: those of files are checked before."""
    declaration = Declaration(
        where=place, origin='TF1', profile_directory=place, multiplier='',
        tables=tuple(Table(algorithm='adagrad', spec=TableSpec(
            name=name, vocabulary_size=9, dimension=2, hot_id_replication=True,
            optimizer=Adagrad(learning_rate=.1))) for name in tables),
        features=tuple(Feature(declared_name=name, spec=FeatureSpec(
            name=name, table=table, weight_feature=place))
            for name, table in ((feature, tables[0]), (feature + "'", tables[1]))))
    for target in ('tf2', 'tf1'):
        text = targets.written(declaration, target).text
        assert text.encode().decode() == text
        used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        assert used <= CODE
        if target == 'tf1':
            assert sorted(run_tf1(text).TABLES) == sorted(tables)


def test_equal_configs_give_equal_text_that_reads_back():
    from google.protobuf import json_format
    one = config('several_optimizers_2x2')
    one.table_descriptor[0].name = 'ä"\u202e\n'
    as_text = targets.of_config(one, 'textproto').text
    assert text_format.Parse(as_text, Config()) == one
    assert json_format.Parse(targets.of_config(one, 'json').text, Config()) == one
    again = text_format.Parse(as_text, Config())
    assert as_text == targets.of_config(again, 'textproto').text


def test_options_that_are_unset_mean_what_they_mean_to_tensorflow():
    """Accumulation is on, and a table without parameters is not trained."""
    one = config()
    one.table_descriptor[0].ClearField('optimization_parameters')
    one.table_descriptor[1].optimization_parameters.gradient_accumulation_status = 0
    assert normal(config_of_tf2(written(one).text)) == normal(one)
