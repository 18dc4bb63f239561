"""What Python objects declare, and that the way to TF2 and back keeps it."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import json_format, text_format
from harness.migrated_sources import optimizers, run, run_tf1
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator import parameters
from estimator_tpu_embedding.estimator.embedding_spec import EmbeddingConfigSpec
from estimator_tpu_embedding.estimator.table_config import DeviceConfig, FeatureConfig, TableConfig
from estimator_tpu_embedding.estimator.tpu_embedding import TRAINING, TPUEmbedding
from estimator_tpu_embedding.midlevel.embedding import TPUEmbedding as Midlevel
from estimator_tpu_embedding.migration.sources.objects import declaration_of, is_declaration
from estimator_tpu_embedding.migration.sources.targets import written
from estimator_tpu_embedding.proto.codec import Config

api = tf.tpu.experimental.embedding
v1 = tf.compat.v1
BOTH = {'stochastic_gradient_descent', 'adagrad', 'adagrad_momentum', 'ftrl', 'adam'}


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


def source(value, target):
    return written(declaration_of(value, 'a test'), target).text


def notes_of(value, target='tf2'):
    return [str(note) for note in written(declaration_of(value, 'a test'), target).notes]


def tf2_of(value):
    """The FeatureConfigs and the optimizer of the source for TF2 of an object."""
    made = run(source(value, 'tf2'), tf=tf)
    return made.FEATURES, made.OPTIMIZER


def tf1_of(value):
    """The spec of the source for TF1 of an object."""
    return run_tf1(source(value, 'tf1')).EMBEDDING_CONFIG_SPEC


def declared(one):
    """Tables, with the optimizers that train them, and features of a spec, sorted by name."""
    found = declaration_of(one, 'a test')
    return (sorted((dataclasses.replace(
        table.spec, initializer=None, optimizer=rounded(table.spec.optimizer))
        for table in found.tables), key=lambda table: table.name),
            sorted((feature.spec for feature in found.features), key=lambda one: one.name),
            [found.pipelined, found.strategy, found.profile_directory])


def rounded(one):
    """An optimizer or bounds with the numbers of a config, which holds float32."""
    changed = {}
    for field in dataclasses.fields(one):
        value = getattr(one, field.name)
        if isinstance(value, float):
            changed[field.name] = float(np.float32(value))
        elif dataclasses.is_dataclass(value):
            changed[field.name] = rounded(value)
    return dataclasses.replace(one, **changed)


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


def test_the_way_to_tf2_and_back_keeps_all_but_the_keys_of_weights():
    before = spec(pipeline_execution_with_tensor_core=True)
    made = run(source(before, 'tf2'), tf=tf)
    again = tf1_of({'feature_config': made.FEATURES, 'optimizer': made.OPTIMIZER,
                    'pipeline_execution_with_tensor_core': True})
    tables, features, settings_before = declared(before)
    assert declared(again) == (tables, [
        dataclasses.replace(one, weight_feature=None) for one in features], settings_before)
    assert again.table_to_config_dict['video'].initializer.get_config() == {
        'minval': -.5, 'maxval': .5, 'seed': None, 'dtype': 'float32'}
    assert "Its weights come from feature 'viewer_weight'" in '\n'.join(notes_of(before))


@settings(deadline=None, max_examples=40)
@given(st.lists(optimizers(st.sampled_from(sorted(BOTH))), min_size=1, max_size=3))
def test_any_optimizer_of_both_comes_back_with_every_number(own):
    tables = {str(place): TableConfig(9, 2, optimization_parameters=_parameters(one))
              for place, one in enumerate(own)}
    before = EmbeddingConfigSpec(table_to_config_dict=tables, feature_to_config_dict={
        f'f{name}': FeatureConfig(name) for name in tables})
    assert declared(tf1_of(before)) == declared(before)
    assert declared(tf1_of(tf2_of(before))) == declared(before)


def _parameters(optimizer):
    """The parameters of TF1 that are an optimizer of the core."""
    if optimizer.field == 'ftrl':  # TF2 has no argument for one, and no 0 for the other.
        optimizer = dataclasses.replace(
            optimizer, initial_linear=0., initial_accumulator=optimizer.initial_accumulator or .5)

    class Parameters(parameters.StochasticGradientDescentParameters):
        def to_optimizer(self):
            return optimizer
    return Parameters(learning_rate=0.)


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
    told = '\n'.join(notes_of(one))
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
    assert 'The columns of feature "user" look up on the tensor core' in '\n'.join(notes_of(one))
    with pytest.raises(ConfigError, match='E402 a test: at least one table is needed'):
        source(EmbeddingConfigSpec(
            feature_columns=[on_core], optimization_parameters=parameters.AdagradParameters(.1)),
            'tf2')


def ramp(step):
    return .5


def test_functions_are_named_where_they_were_and_wait_to_be_written():
    tables = {'video': TableConfig(22, 4, learning_rate_fn=ramp, initializer=ramp)}
    one = spec(table_to_config_dict=tables, feature_to_config_dict={
        'watched': FeatureConfig('video')}, experimental_gradient_multiplier_fn=ramp)
    for target in ('tf2', 'tf1'):
        told = '\n'.join(notes_of(one, target))
        assert 'function of the step (objects_test.ramp)' in told.replace(__name__, (
            'objects_test'))
        assert 'its initializer cannot be written as source' in told.lower()
        assert 'ultipl' in told
    made = run_tf1(source(one, 'tf1'))
    assert made.EMBEDDING_CONFIG_SPEC.experimental_gradient_multiplier_fn is (
        made.gradient_multiplier)
    with pytest.raises(NotImplementedError, match='write gradient_multiplier'):
        made.gradient_multiplier(7)


def test_a_function_with_some_arguments_is_called_by_its_name():
    tables = {'video': TableConfig(22, 4, learning_rate_fn=functools.partial(ramp))}
    told = '\n'.join(notes_of(spec(
        table_to_config_dict=tables, feature_to_config_dict={'watched': FeatureConfig('video')})))
    assert 'objects_test.ramp)' in told and 'functools' not in told


@pytest.mark.parametrize('count, said', [
    (1, '# - 1 table or feature below has a note.'),
    (2, '# - 2 tables or features below have notes.')])
def test_the_head_counts_the_notes_below(count, said):
    tables = {name: TableConfig(22, 4, hot_id_replication=True) for name in 'ab'[:count]}
    one = spec(table_to_config_dict=tables, feature_to_config_dict={
        name: FeatureConfig(name) for name in tables})
    assert said in source(one, 'tf2').splitlines()


def test_the_way_to_tf1_tells_of_dense_ids_and_of_weights():
    told = '\n'.join(notes_of((nested(), api.SGD()), 'tf1'))
    assert 'takes 0 in dense ids of a table with a combiner for a missing id' in told
    assert 'name theirs as its weight_key' in told


def test_a_legacy_embedding_knows_its_batch_too():
    embedding = TPUEmbedding(
        {'video': TableConfig(22, 4)}, {'watched': FeatureConfig('video')}, batch_size=16,
        mode=TRAINING, optimization_parameters=parameters.AdagradParameters(.1),
        device_config=DeviceConfig(num_hosts=2, num_cores=4, job_name='/job:worker'))
    made = run(source(embedding, 'tf2'), tf=tf)
    assert (made.BATCH_SIZE, made.BATCH_SIZE_PER_REPLICA) == (16, 4)
    assert source(embedding, 'tf2') == source(embedding.plan, 'tf2')
    assert 'num_tensor_cores: 4' in source(embedding, 'textproto')


@pytest.mark.parametrize('kind', ['dict', 'pair', 'other pair'])
def test_the_two_dicts_are_a_spec(kind):
    whole = spec()
    features, tables = whole.feature_to_config_dict, whole.table_to_config_dict
    value = {'dict': {name: value for name, value in whole._asdict().items() if value and name in (
        'feature_to_config_dict', 'table_to_config_dict', 'optimization_parameters')},
             'pair': (features, tables), 'other pair': [tables, features]}[kind]
    names = {table.name for table in declaration_of(value, 'a test').tables}
    assert names == {'video', 'user'}


def nested(**arguments):
    shared = api.TableConfig(22, 4, name='video', combiner='sum', **arguments)
    return {'a': [api.FeatureConfig(shared), api.FeatureConfig(shared, 3)],
            'b': api.FeatureConfig(api.TableConfig(9, 2), output_shape=[8, 2])}


def test_embeddings_of_tf2_and_their_declarations_say_the_same():
    rest = api.FTRL(.1, l1_regularization_strength=.5)
    texts = {source(value, 'tf1') for value in (
        (nested(), rest), {'feature_config': nested(), 'optimizer': rest},
        Midlevel(nested(), rest), api.TPUEmbeddingForServing(nested(), rest))}
    assert len(texts) == 1
    one = run_tf1(texts.pop()).EMBEDDING_CONFIG_SPEC
    assert sorted(one.feature_to_config_dict) == ['a/0', 'a/1', 'b']
    assert one.feature_to_config_dict['a/1'] == FeatureConfig('video', max_sequence_length=3)
    assert one.optimization_parameters.l1_regularization_strength == .5
    assert sorted(one.table_to_config_dict) == ['table_1', 'video']


def test_the_class_of_tensorflow_says_whether_it_is_pipelined():
    embedding = api.TPUEmbedding(nested(), api.SGD(.1), pipeline_execution_with_tensor_core=True)
    assert tf1_of(embedding).pipeline_execution_with_tensor_core is True


def test_an_embedding_that_is_built_knows_its_batch_and_its_config():
    embedding = Midlevel(api.FeatureConfig(api.TableConfig(9, 2, name='t')), api.SGD(), True)
    embedding.build(per_replica_batch_size=8)
    made = run_tf1(source(embedding, 'tf1'))
    assert made.TRAIN_BATCH_SIZE == 8
    assert made.EMBEDDING_CONFIG_SPEC.pipeline_execution_with_tensor_core is True
    assert 'pipeline_execution_with_tensor_core: true' in source(embedding, 'textproto')


def test_what_only_tf2_has_is_told():
    features = nested(
        optimizer=api.Adam(lambda: .1, slot_variable_creation_fn=dict,
                           low_dimensional_packing_status=True),
        quantization_config=api.QuantizationConfig(8, -1., 1.))
    features['b'].validate_weights_and_indices = False
    told = '\n'.join(notes_of((features, None), 'tf1'))
    for part in ('feature_config is nested', 'slot_variable_creation_fn', 'does not round rows',
                 'does not pack narrow rows', 'no output shape ([8, 2])', 'is not trained',
                 'no validate_weights_and_indices', 'is a function of the step'):
        assert part in told


def test_the_first_values_of_ftrl_may_be_0_in_tf1_alone():
    one = spec(optimization_parameters=parameters.FtrlParameters(.1, initial_accumulator_value=0.))
    assert tf1_of(one).optimization_parameters.initial_accumulator_value == 0
    assert 'Its FTRL accumulators begin at 0' in '\n'.join(notes_of(one))
    assert tf2_of(one)[1].initial_accumulator_value == .1


@pytest.mark.parametrize('value', [
    3, None, {}, [], (), 'text', {'a': 1}, ({}, {}), object(), tf.zeros([2]), [api.SGD()]])
def test_other_objects_declare_nothing(value):
    assert declaration_of(value, 'a test') is None
    assert not is_declaration(value)


def test_what_is_wrong_in_a_declaration_is_told_at_once():
    with pytest.raises(ConfigError) as caught:
        declaration_of(({'a': api.FeatureConfig(api.TableConfig(9, 2, name='../x'))},
                        'adagrad'), 'a test')
    assert {problem.code for problem in caught.value.problems} == {'E403', 'E445'}
    with pytest.raises(ConfigError, match='E675'):
        declaration_of({'feature_to_config_dict': {}, 'table_to_config_dict': {}}, 'a test')


def test_a_config_of_objects_needs_a_batch():
    with pytest.raises(ConfigError, match='E674 a test: a config holds the batch size'):
        source(spec(), 'json')


@pytest.mark.parametrize('target', ['textproto', 'json'])
def test_what_no_config_holds_is_told(target):
    one = declaration_of(spec(experimental_gradient_multiplier_fn=ramp), 'a test')
    made = written(one.sized(8, Topology(num_hosts=1, cores_per_host=2)), target)
    note, = made.notes
    assert note.code == 'E671' and 'no function that multiplies gradients' in note.fact
    config = Config()
    if target == 'json':
        json_format.Parse(made.text, config)
    else:
        assert made.text.startswith('# job: A config has no function that multiplies gradients')
        text_format.Parse(made.text, config)
    assert config.num_tensor_cores == 2
