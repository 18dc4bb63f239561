import collections
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from harness import tf2_configs

from estimator_tpu_embedding.core import limits
from estimator_tpu_embedding.core.optimizers import ConstantRate, rate_tags
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.midlevel import feature_configs
from estimator_tpu_embedding.proto.codec import Config

api = tf.tpu.experimental.embedding
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / 'golden' / 'tf2_configs'
DECLARATIONS = tf2_configs.declarations(api)
Pair = collections.namedtuple('Pair', ['x', 'y'])


def table(name=None, **kwargs):
    return api.TableConfig(**{'vocabulary_size': 8, 'dim': 2, 'name': name, **kwargs})


def declare(features, optimizer=None, needs_optimizer=False):
    return feature_configs.declare(features, optimizer, needs_optimizer=needs_optimizer)


def codes(features, optimizer=None, needs_optimizer=False):
    with pytest.raises(ConfigError) as caught:
        declare(features, optimizer, needs_optimizer)
    return [problem.code for problem in caught.value.problems]


def test_tables_come_in_order_of_appearance_and_get_their_name_and_optimizer():
    first, second, third = table(), table('b', optimizer=api.Adam()), table()
    default = api.SGD()
    features = {'z': api.FeatureConfig(first), 'a': [
        api.FeatureConfig(second), Pair(api.FeatureConfig(first), api.FeatureConfig(third))]}
    declared = declare(features, default, needs_optimizer=True)
    assert declared.structure is features
    assert declared.paths == ('a/0', 'a/1/x', 'a/1/y', 'z')
    assert declared.tables == (second, first, third)
    assert [one.name for one in declared.tables] == ['b', 'table_1', 'table_2']
    assert first.optimizer is third.optimizer is default is not second.optimizer
    assert [feature.table for feature in declared.features] == [second, first, third, first]
    packed = declared.pack('abcd')
    assert packed == {'a': ['a', Pair('b', 'c')], 'z': 'd'}
    assert declared.flatten(packed, 'gradients') == list('abcd')


def test_all_problems_of_a_declaration_come_at_once_and_nothing_is_changed():
    first, second, third, fourth = (
        table('same', optimizer='adam'), table('same'), table(), table('wide', dim=2**20))
    features = [api.FeatureConfig(one) for one in (first, second, third, fourth)]
    with pytest.raises(ConfigError) as caught:
        declare(features, None, needs_optimizer=True)
    text = str(caught.value)
    assert sorted(problem.code for problem in caught.value.problems) == [
        'E404', 'E413', 'E445', 'E445', 'E445', 'E445']
    assert 'Tables must have a unique name. Multiple tables with name same found.' in text
    assert ("<class 'str'> is an unsupported optimizer class. Please pass an instance of one of "
            'the optimizer classes under tf.tpu.experimental.embedding.') in text
    assert "<class 'NoneType'> is an unsupported optimizer class." in text
    assert third.name is None and second.optimizer is None


def test_limits_of_the_core_hold():
    one = table('a', vocabulary_size=limits.MAX_VOCABULARY_SIZE + 1)
    assert codes(api.FeatureConfig(one)) == ['E412']
    assert codes(api.FeatureConfig(table('../up'))) == ['E403']
    assert codes({}) == ['E402', 'E402']
    assert codes({'a': table()}) == ['E446']
    assert codes(api.FeatureConfig(table()), api.SGD(-1.)) == ['E421']
    assert codes(api.FeatureConfig(table()), api.SGD(clipvalue=-1.)) == ['E427']
    assert codes(api.FeatureConfig(table()), api.SGD(Unhashable())) == ['E422']
    assert codes(api.FeatureConfig(table()), object()) == ['E445']


class Unhashable:
    __hash__ = None

    def __call__(self):
        return .1


def test_an_initializer_that_is_a_class_is_refused():
    one = table('a', initializer=tf.keras.initializers.Zeros)
    assert codes(api.FeatureConfig(one)) == ['E495']
    assert declare(api.FeatureConfig(table(initializer=tf.keras.initializers.Zeros()))).tables


@pytest.mark.parametrize('name', DECLARATIONS)
def test_configs_are_those_of_the_original_byte_by_byte(name):
    features, optimizer, size = DECLARATIONS[name]
    config = feature_configs.config_of(
        declare(features, optimizer, True), [tuple(shape) for shape in size.output_shapes],
        num_hosts=size.num_hosts, num_cores=size.num_cores, pipelined=size.pipelined)
    golden = text_format.Parse((GOLDEN / f'{name}.pbtxt').read_text(), Config())
    assert text_format.MessageToString(config) == text_format.MessageToString(golden)
    assert config.SerializeToString(deterministic=True) == golden.SerializeToString(
        deterministic=True)


def test_every_golden_has_a_declaration():
    assert {path.stem for path in GOLDEN.glob('*.pbtxt')} == DECLARATIONS.keys()


def test_a_table_without_an_optimizer_has_no_rate():
    config = feature_configs.config_of(declare(api.FeatureConfig(table('t'))), [(8,)], num_hosts=1,
                                       num_cores=1, pipelined=False)
    assert not config.table_descriptor[0].optimization_parameters.HasField('learning_rate')


def test_equal_functions_are_one_rate_that_ignores_the_step():
    class Schedule:
        def rate(self):
            return .125

    schedule, other = Schedule(), Schedule()
    rates = [feature_configs.rate_of(api.Adam(function)) for function in (
        schedule.rate, schedule.rate, other.rate, .5)]
    assert rates[0] == rates[1] != rates[2]
    assert list(rate_tags(rates).values()) == [0, 1]
    assert rates[0].function(np.int64(7)) == .125
    assert rates[3] == ConstantRate(value=.5)
    assert feature_configs.core_optimizer(api.Adam(schedule.rate)).learning_rate == 0.


@pytest.mark.parametrize('make', [api.SGD, api.Adagrad, api.AdagradMomentum, api.FTRL, api.Adam])
def test_slots_and_what_they_begin_with_are_those_of_tensorflow(make):
    one = make()
    made = feature_configs.core_optimizer(one)
    assert not list(made.problems('defaults'))
    assert feature_configs.slot_names(one) == tuple(one._slot_names())
    assert [slot.initial_value for slot in made.slots] == [
        pytest.approx(float(initializer([], tf.float32)))
        for initializer in one._slot_initializers()]
