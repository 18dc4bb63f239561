"""Sources of TF2 declare what their config does, and tell what they cannot say."""

import dataclasses
import pathlib

import pytest
import tensorflow as tf
from google.protobuf import text_format
from harness.migrated_sources import config_of_tf2, normal, run, too_long
from harness.processes import run_python
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.core.optimizers import OPTIMIZERS, Bounds, DynamicRate
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.migration import declaration_text, job_declaration
from estimator_tpu_embedding.proto.codec import Config, plan_to_config

GOLDEN = pathlib.Path(__file__).parents[1] / 'golden'
PATHS = sorted(GOLDEN.glob('configs/*.pbtxt'))
TAKEN = {'tf2': {'stochastic_gradient_descent', 'adagrad', 'adagrad_momentum', 'ftrl', 'adam'},
         'tfrs': {'stochastic_gradient_descent', 'adagrad', 'ftrl', 'adam'}}


def read(path):
    return text_format.Parse(path.read_text(), Config())


def written(config, target='tf2'):
    return declaration_text.written(job_declaration.of_config(config, 'a config'), target)


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


def any_configs():
    """A hypothesis strategy of configs: any numbers, sequences, names and rates."""
    rates = [DynamicRate(function=abs), DynamicRate(function=round)]
    names = st.text(st.characters(exclude_categories=['C', 'Z']), min_size=1, max_size=9).filter(
        lambda name: not {'', '.', '..'} & set(name.split('/')))
    chosen = optimizers(st.sampled_from(sorted(OPTIMIZERS)))

    @st.composite
    def drawn(draw):
        common = draw(chosen)
        tables = [TableSpec(
            name=name, vocabulary_size=draw(st.integers(4, 99)), dimension=draw(st.integers(1, 9)),
            optimizer=draw(st.one_of(st.just(common), chosen)),
            rate=draw(st.sampled_from([None, None, *rates])),
            hot_id_replication=draw(st.booleans()))
            for name in draw(st.lists(names, min_size=1, max_size=4, unique=True))]
        features = [FeatureSpec(name=f'{place} {number}', table=table.name,
                                max_sequence_length=draw(st.integers(0, 2)))
                    for place, table in enumerate(tables)
                    for number in range(draw(st.integers(1, 2)))]
        return plan_to_config(resolve(
            tables, features, Topology(num_hosts=2, cores_per_host=2), batch_size=12,
            strategy=draw(st.sampled_from(['div', 'mod'])), pipelined=draw(st.booleans())))

    return drawn()


def optimizers(fields):
    """A hypothesis strategy of legal optimizers of the core.

    Args:
      fields: a strategy of names of algorithms.
    """
    def number(**limits):
        return st.floats(limits.get('at_least', limits.get('above', -8)),
                         limits.get('at_most', limits.get('below', 8)), width=32)

    bounds = st.tuples(*[st.one_of(st.none(), number())] * 2).map(
        lambda pair: Bounds(lower=pair[0], upper=pair[1]))

    def of(field):
        kind = OPTIMIZERS[field]
        own = {one.name: number(**one.metadata['bounds']) if 'bounds' in one.metadata
               else st.booleans() for one in dataclasses.fields(kind)
               if 'bounds' in one.metadata or one.name.startswith(('use_', 'multiply_', 'allow_'))}
        tail = {'clip_weights': bounds, 'clip_gradients': bounds, 'accumulate': st.booleans(),
                'decay': st.sampled_from([None, .25, .1]), 'decay_times_rate': st.booleans()}
        return st.builds(kind, learning_rate=number(at_least=0), **own, **tail)

    return fields.flatmap(of).filter(lambda one: not list(one.problems('t')) and not (
        one.decay_times_rate and one.decay is None))


@settings(deadline=None, max_examples=60)
@given(any_configs())
def test_any_config_keeps_what_tf2_has(config):
    text = written(config).text
    assert normal(config_of_tf2(text, 2, 4)) == normal(with_losses(config, 'tf2'))


def test_sources_pass_lint(tmp_path):
    for path in PATHS:
        for target in TAKEN:
            (tmp_path / f'{path.stem}_{target}.py').write_text(written(read(path), target).text)
    done = run_python('-m', 'ruff', 'check', '-q', '--no-cache', '--isolated', tmp_path)
    assert (done.returncode, done.stdout) == (0, '')


def notes_of(config):
    return [(note.code, str(note)) for note in written(config).notes]


def test_an_optimizer_that_tf2_lacks_leaves_all_tables_without_a_common_one():
    """Else the tables would be trained by another than their own, and nobody would see it."""
    config = read(GOLDEN / 'configs' / 'Adagrad_defaults.pbtxt')
    config.table_descriptor[1].optimization_parameters.proximal_adagrad.l1 = .5
    made = written(config)
    assert '\n    # TPUEmbedding of TF2 has no optimizer like proximal_adagrad' in made.text
    assert '\nOPTIMIZER = None\n' in made.text
    (item, user) = config_of_tf2(made.text).table_descriptor
    assert item.optimization_parameters.HasField('adagrad')
    assert not user.HasField('optimization_parameters')
    assert [text for code, text in notes_of(config) if code == 'E672'] == [
        'TPUEmbedding of TF2 has no optimizer like proximal_adagrad (learning_rate=0.1, l1=0.5, '
        'l2=0.0). The table has none here: choose one yourself, with a rate of its own.']


def test_what_tf2_lacks_is_told_with_what_to_do():
    config = read(GOLDEN / 'configs' / 'several_optimizers_2x2.pbtxt')
    config.profile_data_directory = '/data/ids'
    config.table_descriptor[0].optimization_parameters.hot_id_replication_configuration.status = 1
    told = '\n'.join(text for code, text in notes_of(config) if code == 'E671')
    for part in ('in the order of mod', 'moves the rows', "profile_data_directory, '/data/ids'",
                 'hot_id_replication'):
        assert part in told


def test_a_learning_rate_that_was_a_function_waits_to_be_written():
    text = written(read(GOLDEN / 'configs' / 'dynamic_rates.pbtxt')).text
    made = run(text, tf=tf)
    rates = {name: table.optimizer.learning_rate if table.optimizer else
             made.OPTIMIZER.learning_rate for name, table in made.TABLES.items()}
    assert rates['t0'] is rates['t3'] is not rates['t1']
    with pytest.raises(NotImplementedError, match='write learning_rate_0'):
        made.learning_rate_0()


def test_the_batch_of_all_replicas_is_derived_from_that_of_a_core():
    made = run(written(read(GOLDEN / 'configs' / 'mod_3x2.pbtxt')).text, tf=tf)
    assert (made.BATCH_SIZE, made.BATCH_SIZE_PER_REPLICA) == (24, 4)
    assert '# Samples per step: global 24 = 3 hosts x 2 cores x 4.' in written(
        read(GOLDEN / 'configs' / 'mod_3x2.pbtxt')).text


def test_what_only_configs_of_tf2_say_is_kept():
    text = written(read(GOLDEN / 'tf2_configs' / 'features.pbtxt')).text
    assert 'output_shape=[2, 3, 4],' in text and 'api.QuantizationConfig(' in text
