import pathlib

import pytest
import tensorflow as tf
from google.protobuf import text_format
from harness import tf2_configs

from estimator_tpu_embedding.midlevel import config_proto, declaration
from estimator_tpu_embedding.proto.codec import Config

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / 'golden' / 'tf2_configs'
DECLARATIONS = tf2_configs.declarations(tf.tpu.experimental.embedding)


def config_of(feature_config, optimizer, size):
    declared = declaration.declare(feature_config, optimizer, needs_optimizer=True)
    return config_proto.config_of(
        declared, [tuple(shape) for shape in size.output_shapes], num_hosts=size.num_hosts,
        num_cores=size.num_cores, pipelined=size.pipelined)


@pytest.mark.parametrize('name', DECLARATIONS)
def test_configs_are_those_of_the_original_byte_by_byte(name):
    config = config_of(*DECLARATIONS[name])
    golden = text_format.Parse((GOLDEN / f'{name}.pbtxt').read_text(), Config())
    assert text_format.MessageToString(config) == text_format.MessageToString(golden)
    assert config.SerializeToString(deterministic=True) == golden.SerializeToString(
        deterministic=True)


def test_every_golden_has_a_declaration():
    assert {path.stem for path in GOLDEN.glob('*.pbtxt')} == DECLARATIONS.keys()


def test_a_table_without_an_optimizer_has_no_rate():
    api = tf.tpu.experimental.embedding
    declared = declaration.declare(
        api.FeatureConfig(api.TableConfig(4, 2, name='t')), None, needs_optimizer=False)
    config = config_proto.config_of(declared, [(8,)], num_hosts=1, num_cores=1, pipelined=False)
    assert not config.table_descriptor[0].optimization_parameters.HasField('learning_rate')
