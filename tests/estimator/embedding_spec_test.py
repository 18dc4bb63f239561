import copy

import pytest
from harness import jobs

import estimator_tpu_embedding as ete

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


def test_it_can_be_copied_which_the_original_could_not():
    made = spec(partition_strategy='mod')
    assert copy.copy(made) == made
    assert copy.deepcopy(made).partition_strategy == 'mod'


@pytest.mark.parametrize('name, meant', [
    ('column', 'feature_columns'), ('columns', 'feature_columns'),
    ('feature_column', 'feature_columns'), ('partition_stategy', 'partition_strategy'),
    ('optimization_parameter', 'optimization_parameters')])
def test_an_unknown_argument_is_answered_with_the_one_that_was_meant(name, meant):
    with pytest.raises(TypeError) as caught:
        ete.EmbeddingConfigSpec(**{name: [], 'optimization_parameters': ADAGRAD})
    assert str(caught.value).startswith('E461 EmbeddingConfigSpec: arguments are ')
    assert f'got "{name}".  did you mean `{meant}`?' in str(caught.value)


@pytest.mark.parametrize('change, error, text', [
    ({'feature_columns': None}, ValueError, 'Exactly one of `feature_columns` and the pair '
     '`feature_to_config_dict` and `table_to_config_dict` must be be specified.'),
    ({'feature_columns': []}, ValueError, 'must be be specified.'),
    ({'feature_to_config_dict': {'a': 1}, 'table_to_config_dict': {'b': 2}}, ValueError,
     'must be be specified.'),
    ({'partition_strategy': 'hash'}, ValueError,
     'Invalid partition_strategy hash. Must be one of "mod" or "div".'),
    ({'feature_columns': [3]}, TypeError, 'All feature columns must be supported types in'),
    ({'optimization_parameters': .1}, ValueError,
     'optimization_parameters must be an instance of type'),
    ({'optimization_parameters': None}, ValueError,
     'optimization_parameters must be an instance of type')])
def test_bad_values_get_the_errors_of_the_original(change, error, text):
    with pytest.raises(error) as caught:
        spec(**change)
    assert text in str(caught.value)


def test_all_that_is_not_supported_yet_is_named_at_once():
    with pytest.raises(ete.UnsupportedError) as caught:
        spec(pipeline_execution_with_tensor_core=True, profile_data_directory='/x',
             experimental_gradient_multiplier_fn=abs)
    assert caught.value.code == 'E905'
    assert [problem.rule.split()[0] for problem in caught.value.problems] == [
        'pipeline_execution_with_tensor_core', 'experimental_gradient_multiplier_fn',
        'profile_data_directory']
