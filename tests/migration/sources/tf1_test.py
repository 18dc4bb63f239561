import pathlib

import pytest
from google.protobuf import text_format
from harness.migrated_sources import any_configs, normal, plan_of_tf1, run_tf1, too_long
from hypothesis import given, settings

from estimator_tpu_embedding.migration.sources import configs, targets
from estimator_tpu_embedding.proto.codec import Config, plan_to_config

GOLDEN = pathlib.Path(__file__).parents[2] / 'golden'


def read(path):
    return text_format.Parse(path.read_text(), Config())


def written(config):
    return targets.written(configs.declaration_of(config, 'a config'), 'tf1')


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


OLD = {'stochastic_gradient_descent', 'adagrad', 'adagrad_momentum', 'ftrl', 'adam', 'momentum',
       'proximal_adagrad', 'rms_prop', 'proximal_yogi', 'frequency_estimator'}


@settings(deadline=None, max_examples=50)
@given(any_configs(OLD - {'frequency_estimator'}))
def test_any_config_keeps_all_that_tpu_estimator_has(config):
    assert normal(config_of(written(config).text, config)) == normal(config)


@settings(deadline=None, max_examples=20)
@given(any_configs())
def test_a_table_gets_no_other_optimizer_than_its_own(config):
    """Also where the specs of other tables have one that could be that of all."""
    own = {table.name: table.optimization_parameters.WhichOneof('parameters')
           for table in config.table_descriptor}
    made = written(config)
    tables, _ = run_tf1(made.text).EMBEDDING_CONFIG_SPEC.to_specs()
    lost = {name for name, field in own.items() if field not in OLD}
    if lost:
        assert run_tf1(made.text).OPTIMIZATION_PARAMETERS is None
        assert {table.name: table.optimizer and table.optimizer.field for table in tables} == {
            name: field if field in OLD else None for name, field in own.items()}
    assert len([note for note in made.notes if note.code == 'E672']) == len(lost)


def test_what_tpu_estimator_lacks_is_told():
    config = read(GOLDEN / 'tf2_configs' / 'features.pbtxt')
    told = {note.where: str(note) for note in written(config).notes if note.code == 'E671'}
    assert told['table "table_1"'].startswith('TPUEstimator does not round rows that are looked up')
    assert told['feature "table_1"'] == 'TPUEstimator has no output shape ([2, 3, 4]).'


def test_a_table_without_a_feature_is_left_out_and_told():
    config = read(GOLDEN / 'configs' / 'Adagrad_defaults.pbtxt')
    config.table_descriptor.add(name='idle', vocabulary_size=3, dimension=2)
    made = written(config)
    assert 'idle' not in run_tf1(made.text).TABLES
    assert 'table "idle" has no feature, and TPUEstimator refuses such a table' in {
        note.fact for note in made.notes}
