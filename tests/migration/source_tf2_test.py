import pathlib
import subprocess
import sys

import pytest
from google.protobuf import text_format
from harness.migrated import config_of_tf2, normal, too_long
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.migration import source_configs, source_targets
from estimator_tpu_embedding.proto.codec import Config

GOLDEN = pathlib.Path(__file__).parent.parent / 'golden'
PATHS = sorted(GOLDEN.glob('*configs/*.pbtxt'))
TAKEN = {'tf2': {'stochastic_gradient_descent', 'adagrad', 'adagrad_momentum', 'ftrl', 'adam'},
         'tfrs': {'stochastic_gradient_descent', 'adagrad', 'ftrl', 'adam'}}


def read(path):
    return text_format.Parse(path.read_text(), Config())


def written(config, target='tf2'):
    return source_targets.written(source_configs.declaration_of(config, 'a config'), target)


def with_losses(config, target):
    """What is left of a config in TF2: all but the parts that it lacks."""
    left = Config()
    left.CopyFrom(config)
    left.mode = Config.TRAINING
    left.sharding_strategy = Config.DIV_DEFAULT
    left.profile_data_directory = ''
    for table in left.table_descriptor:
        parameters = table.optimization_parameters
        if parameters.WhichOneof('parameters') in TAKEN[target]:
            parameters.ClearField('hot_id_replication_configuration')
        else:
            table.ClearField('optimization_parameters')
    return left


@pytest.mark.parametrize('target', TAKEN)
@pytest.mark.parametrize('path', PATHS, ids=lambda path: path.stem)
def test_the_source_declares_the_tables_features_and_optimizers_of_its_config(path, target):
    config = read(path)
    text = written(config, target).text
    again = config_of_tf2(text, config.num_hosts, config.num_tensor_cores)
    assert normal(again) == normal(with_losses(config, target))
    assert not too_long(text)


def test_sources_pass_flake8(tmp_path):
    for path in PATHS:
        for target in ('tf2', 'tfrs', 'tf1'):
            (tmp_path / f'{path.stem}_{target}.py').write_text(written(read(path), target).text)
    done = subprocess.run([sys.executable, '-m', 'flake8', '--isolated', tmp_path],
                          stdout=subprocess.PIPE, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, '')
