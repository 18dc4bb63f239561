import pathlib

import pytest
from google.protobuf import text_format
from harness.migrated import normal, plan_of_tf1, too_long

from estimator_tpu_embedding.migration import source_configs, source_targets
from estimator_tpu_embedding.proto.codec import Config, plan_to_config

GOLDEN = pathlib.Path(__file__).parent.parent / 'golden'


def read(path):
    return text_format.Parse(path.read_text(), Config())


def written(config):
    return source_targets.written(source_configs.declaration_of(config, 'a config'), 'tf1')


def config_of(text, config):
    plan = plan_of_tf1(text, config.num_hosts, config.num_tensor_cores // config.num_hosts)
    return plan_to_config(plan)


@pytest.mark.parametrize('path', sorted(GOLDEN.glob('configs/*.pbtxt')), ids=lambda path: path.stem)
def test_the_source_declares_everything_that_its_config_does(path):
    config = read(path)
    text = written(config).text
    config.mode = Config.TRAINING  # TPUEstimator asks for the mode when it trains.
    assert normal(config_of(text, config)) == normal(config)
    assert not too_long(text)
