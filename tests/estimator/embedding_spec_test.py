import copy

import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.core.optimizers import ConstantRate
from estimator_tpu_embedding.core.specs import FeatureSpec
from estimator_tpu_embedding.estimator import optimizer_parameters as parameters
from estimator_tpu_embedding.estimator.table_config import FeatureConfig, TableConfig

ADAGRAD = ete.AdagradParameters(.1)


def spec(**kwargs):
    return ete.EmbeddingConfigSpec(**{
        'feature_columns': [jobs.embedding('a')], 'optimization_parameters': ADAGRAD, **kwargs})


def test_the_fields_are_those_of_the_original_in_its_order():
    made = spec(partition_strategy='mod', clipping_limit=3.)
    assert made._fields == (
        'feature_columns', 'tensor_core_feature_columns', 'optimization_parameters',
        'clipping_limit', 'pipeline_execution_with_tensor_core',
        'experimental_gradient_multiplier_fn', 'feature_to_config_dict', 'table_to_config_dict',
        'partition_strategy', 'profile_data_directory')
    assert (made.partition_strategy, made.tensor_core_feature_columns) == ('mod', [])


@pytest.mark.parametrize('name, meant', [
    ('column', 'feature_columns'), ('partition_stategy', 'partition_strategy')])
def test_an_unknown_argument_is_answered_with_the_one_that_was_meant(name, meant):
    with pytest.raises(TypeError) as caught:
        ete.EmbeddingConfigSpec(**{name: [], 'optimization_parameters': ADAGRAD})
    assert str(caught.value).startswith('E461 EmbeddingConfigSpec: arguments are ')
    assert f'got "{name}".  Did you mean "{meant}"?' in str(caught.value)


@pytest.mark.parametrize('change, error, text', [
    ({'feature_columns': None}, ValueError, 'Exactly one of `feature_columns` and the pair '
     '`feature_to_config_dict` and `table_to_config_dict` must be be specified.'),
    ({'feature_columns': []}, ValueError, 'must be be specified.'),
    ({'feature_to_config_dict': {'a': 1}, 'table_to_config_dict': {'b': 2}}, ValueError,
     'must be be specified.'),
    ({'partition_strategy': 'hash'}, ValueError,
     'Invalid partition_strategy hash. Must be one of "mod" or "div".'),
    ({'feature_columns': [3]}, TypeError, 'All feature columns must be supported types in'),
    *[({'optimization_parameters': one}, ValueError,
       'optimization_parameters must be an instance of type') for one in (
           None, parameters.AdagradMomentumParameters(.1, .1), parameters.ProximalYogiParameters(),
           parameters.FrequencyEstimatorParameters(.1, .1, .1, .1))]])
def test_bad_values_get_the_errors_of_the_original(change, error, text):
    with pytest.raises(error) as caught:
        spec(**change)
    assert text in str(caught.value)


def by_dicts(tables, features, **kwargs):
    return ete.EmbeddingConfigSpec(table_to_config_dict=tables, feature_to_config_dict=features,
                                   **kwargs)


def test_a_spec_by_dicts_takes_any_optimizer_and_keeps_no_columns():
    yogi = parameters.ProximalYogiParameters()
    made = by_dicts({'t': TableConfig(5, 2, learning_rate=0.)}, {'f': FeatureConfig('t', 3, 'w')},
                    optimization_parameters=yogi)
    assert made.feature_columns is None and made.tensor_core_feature_columns is None
    (table,), (feature,) = made.to_specs()
    assert (table.vocabulary_size, table.rate) == (5, ConstantRate(value=0.))
    assert feature == FeatureSpec(name='f', table='t', max_sequence_length=3, weight_feature='w')
    assert copy.copy(made) == made


@pytest.mark.parametrize('tables, features, error, text', [
    ({'t': 1}, {'f': FeatureConfig('t')}, TypeError,
     "Config for table t must be of type `TableConfig`. Got <class 'int'>"),
    ({'t': TableConfig(5, 2)}, {'f': 1}, TypeError,
     "Config for feature f must be of type `FeatureConfig`. Got <class 'int'>"),
    ({'t': TableConfig(5, 2)}, {'f': FeatureConfig('u')}, ValueError,
     'Feature f refers to table u which is not in the table_to_config_dict.')])
def test_bad_dicts_get_the_errors_of_the_original(tables, features, error, text):
    with pytest.raises(error) as caught:
        by_dicts(tables, features)
    assert str(caught.value) == text
    assert not hasattr(caught.value, '__notes__')


def test_columns_for_the_tensor_core_are_kept_apart_and_come_back_in_a_copy():
    dense = ete.embedding_column(jobs.identity_column('b'), 2, tensor_core_shape=[None, 4],
                                 embedding_lookup_device='tpu_tensor_core')
    made = spec(feature_columns=[dense, jobs.embedding('a')])
    assert [column.name for column in made.feature_columns] == ['a_embedding']
    assert made.tensor_core_feature_columns == [dense]
    assert copy.copy(made) == made
    assert copy.deepcopy(made).partition_strategy == 'div'


def test_a_clipping_limit_warns_once_that_it_does_nothing_and_names_what_does(caplog):
    spec(clipping_limit=3.)
    assert caplog.text.count('W461 EmbeddingConfigSpec: clipping_limit has no effect') == 1
    assert 'clip_weight_min and clip_weight_max' in caplog.text


def test_other_columns_are_taken_and_refused_when_a_run_needs_their_tables():
    made = spec(feature_columns=[tf.feature_column.numeric_column('n'), jobs.embedding('a')])
    with pytest.raises(TypeError, match='Unsupported feature column'):
        made.to_specs()
