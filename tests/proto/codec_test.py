import pathlib

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.core.optimizers import UNDOCUMENTED
from estimator_tpu_embedding.core.specs import Quantization
from estimator_tpu_embedding.errors import ConfigError, UnsupportedError
from estimator_tpu_embedding.proto.codec import (
    Config,
    LowDimensionalPacking,
    config_to_plan,
    plan_to_config,
)

GOLDENS = pathlib.Path(__file__).parent.parent / 'golden' / 'configs'


def golden(name):
    return text_format.Parse((GOLDENS / f'{name}.pbtxt').read_text(), Config())


@pytest.mark.parametrize('path', sorted(GOLDENS.glob('*.pbtxt')), ids=lambda path: path.stem)
def test_decoding_a_golden_and_encoding_it_again_gives_the_same_bytes(path):
    """`tests/estimator/tpu_embedding_test.py` encodes the declarations of all goldens."""
    config = golden(path.stem)
    assert plan_to_config(config_to_plan(config)) == config


def is_repeated(field):
    """As every protobuf from 4.25 on can say it."""
    return field.is_repeated if hasattr(field, 'is_repeated') else field.label == 3


def fields_of(message, seen):
    """Every field below a message descriptor: what the wire and the text format depend on."""
    if message.full_name in seen:
        return {}
    seen.add(message.full_name)
    found = {}
    for field in message.fields:
        found[f'{message.name}.{field.name}'] = (
            field.number, field.type, is_repeated(field),
            field.containing_oneof.name if field.containing_oneof else None,
            {value.name: value.number for value in field.enum_type.values}
            if field.enum_type else None)
        if field.message_type is not None:
            found.update(fields_of(field.message_type, seen))
    return found


def test_every_field_has_tensorflows_name_number_and_type():
    theirs = pytest.importorskip('tensorflow.core.protobuf.tpu.tpu_embedding_configuration_pb2')
    ours = fields_of(Config.DESCRIPTOR, set())
    reference = fields_of(theirs.TPUEmbeddingConfiguration.DESCRIPTOR, set())
    different = {name for name in reference if not name.startswith(('Hlo', 'Xla'))
                 and name in ours and ours[name] != reference[name]}
    # The one exception, which protos/README.md explains: an XLA program is bytes here.
    assert different == {'UserDefinedProgramParameters.program'}
    only_here = ours.keys() - reference.keys()
    # What TensorFlow 2.16 to 2.20 do not have yet, or call otherwise.
    assert all(name.split('.')[0] in ('SpmdSharding', 'FrequencyAwareAdagradParameters',
                                      'OptimizerDynamicInput')
               or name.endswith('.frequency_aware_adagrad') for name in only_here)
    assert len(ours) > 100


NAMES = st.text('abcxyz_09', min_size=1, max_size=8)


@pytest.mark.parametrize('text, lines', [
    ('', ['E441 mode', 'E402 plan', 'E402 plan', 'E410 topology']),
    ('mode: TRAINING num_hosts: 2 num_tensor_cores: 3 feature_descriptor { table_id: 1 '
     'input_shape: 0 } table_descriptor { name: "t" }',
     ['E401 feature 0', 'E433 feature_descriptor', 'E412 table "t"', 'E413 table "t"',
      'E421 table "t"', 'E443 table "t"', 'E410 topology']),
])
def test_p09_messages_that_are_no_plan_say_all_reasons(text, lines):
    with pytest.raises(ConfigError) as caught:
        config_to_plan(text_format.Parse(text, Config()))
    assert [f'{problem.code} {problem.where}' for problem in caught.value.problems] == lines


def lines_of(config):
    with pytest.raises(ConfigError) as caught:
        config_to_plan(config)
    return [f'{problem.code} {problem.where}: got {problem.got}'
            for problem in caught.value.problems]


@pytest.mark.parametrize('rows, width', [(-1, 0), (0, 2**31 - 1), (2**31, -1), (2**63 - 1, 2**17)])
def test_p05_r02_every_size_that_cannot_be_is_listed(rows, width):
    config = golden('several_optimizers_2x2')
    for table in config.table_descriptor[:2]:
        table.vocabulary_size, table.dimension = rows, width
    assert lines_of(config) == [
        line for name in 'ab' for line in (
            f'E412 table "{name}": got {rows}', f'E413 table "{name}": got {width}')]


@pytest.mark.parametrize('name, code', [('mode', 'E441'), ('sharding_strategy', 'E440')])
def test_p06_a_value_that_an_enum_does_not_have_is_refused(name, code):
    config = golden('census_training_1x1')
    setattr(config, name, 99)
    line, = lines_of(config)
    assert line.startswith(code) and '99' in line


@pytest.mark.parametrize('bad', [float('nan'), float('inf'), -float('inf')])
def test_p07_hyper_parameters_that_are_no_numbers_are_refused(bad):
    config = golden('census_training_1x1')
    parameters = config.table_descriptor[0].optimization_parameters
    parameters.learning_rate.constant = bad
    parameters.ftrl.l1 = bad
    parameters.ftrl.l2 = .1
    assert {line.partition(' ')[0] for line in lines_of(config)} == {'E421', 'E425'}


@pytest.mark.parametrize('field', sorted(UNDOCUMENTED))
def test_an_optimizer_without_a_documented_formula_is_unsupported(field):
    config = golden('census_training_1x1')
    name = config.table_descriptor[1].name
    getattr(config.table_descriptor[1].optimization_parameters, field).SetInParent()
    with pytest.raises(UnsupportedError, match=f'E918 table "{name}": the formula of its optimizer '
                       f'must be documented, .*; got {field}.  Train with one of adadelta, '):
        config_to_plan(config)
    config.num_tensor_cores = 0  # Now it is no plan either, and all is said at once.
    with pytest.raises(ConfigError) as caught:
        config_to_plan(config)
    assert {problem.code for problem in caught.value.problems} == {'E410', 'E918'}


@pytest.mark.parametrize('change, field', [
    (lambda config: setattr(config, 'batch_size_per_tensor_core', 3),
     'batch_size_per_tensor_core'),
    (lambda config: setattr(config.table_descriptor[0].optimization_parameters
                            .simulated_quantization, 'num_buckets', 16), 'table_descriptor'),
    (lambda config: config.MergeFromString(b'\xc2\x3e\x01x'), 'unknown fields')])
def test_p08_what_a_plan_cannot_hold_is_refused_not_dropped(change, field):
    config = golden('census_training_1x1')
    change(config)
    with pytest.raises(ConfigError, match=f'E470.*{field}'):
        config_to_plan(config)


def test_a_quantized_table_is_encoded_as_tensorflow_does_and_decoded_again():
    config = golden('census_training_1x1')
    message = config.table_descriptor[1].optimization_parameters.simulated_quantization
    message.MergeFrom(text_format.Parse(
        'enabled: true num_buckets: 16 clipping_limits { lower { value: -0.5 } upper {} }',
        type(message)()))
    plan = config_to_plan(config)
    assert [table.quantization for table in plan.tables][:2] == [
        None, Quantization(num_buckets=16, lower=-.5, upper=0.)]
    assert plan_to_config(plan) == config


def test_the_function_of_a_decoded_rate_cannot_be_called():
    plan = config_to_plan(golden('several_optimizers_2x2'))
    with pytest.raises(ConfigError, match='E424 learning rate 0'):
        plan.rate('c').function(1)


@pytest.mark.parametrize('path', sorted((GOLDENS.parent / 'tf2_configs').glob('*.pbtxt')),
                         ids=lambda path: path.stem)
def test_configs_of_tf2_are_plans_of_the_same_tables_and_shapes(path):
    config = text_format.Parse(path.read_text(), Config())
    plan = config_to_plan(config)
    assert [(table.name, table.vocabulary_size, table.dimension) for table in plan.tables] == (
        sorted((table.name, table.vocabulary_size, table.dimension)
               for table in config.table_descriptor))
    assert sorted((feature.table, plan.output_shape(feature)[:-1])
                  for feature in plan.features) == sorted(
        (config.table_descriptor[feature.table_id].name, tuple(feature.input_shape))
        for feature in config.feature_descriptor)


def test_features_of_tf2_have_batches_of_their_own_and_names_that_are_not_unique():
    plan = config_to_plan(text_format.Parse(
        (GOLDENS.parent / 'tf2_configs' / 'features.pbtxt').read_text(), Config()))
    assert [(feature.name, feature.max_sequence_length, feature.output_shape)
            for feature in plan.features] == [
        ('a:000003', 0, None), ('b:000000', 5, None), ('b:000002', 0, None),
        ('table_1:000001', 0, (2, 3, 4))]
    assert plan.batch_size_per_core == 6


SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_order_names_and_shapes_survive_the_round_trip(data):
    """Encoded again, a message is the same but for what `config_to_plan` says is not kept."""
    names = data.draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    ids = data.draw(st.permutations([*range(len(names)), 0, 0]))
    config = Config(mode=Config.TRAINING, num_hosts=2, num_tensor_cores=4)
    for name in names:
        parameters = config.table_descriptor.add(
            name=name, vocabulary_size=data.draw(st.integers(2, 99)), dimension=3
        ).optimization_parameters
        parameters.CopyFrom(golden('census_training_1x1').table_descriptor[0]
                            .optimization_parameters)
        parameters.low_dimensional_packing_status = data.draw(
            st.sampled_from([0, LowDimensionalPacking.ENABLED]))
    for number in ids:
        config.feature_descriptor.add(table_id=number, input_shape=data.draw(SHAPES),
                                      name=data.draw(st.sampled_from(['', 'a', 'b', 'c'])))
    again = plan_to_config(config_to_plan(Config.FromString(config.SerializeToString())))
    assert plan_to_config(config_to_plan(again)) == again

    def content(message):
        tables = [(table.name, table.vocabulary_size) for table in message.table_descriptor]
        return sorted(tables), sorted(
            (tables[feature.table_id], tuple(feature.input_shape))
            for feature in message.feature_descriptor)
    assert content(again) == content(config)
