"""Equal declarations give the proto, the arguments and the errors of TensorFlow 2.15."""

import functools
import inspect
import json
import pathlib

import pytest
from google.protobuf import text_format
from harness import legacy_api
from harness.bad_calls import BAD_CALLS, NAMES
from harness.declarations import all_declarations, build, declaration, optimizer

from estimator_tpu_embedding.errors import ConfigError, UnsupportedError
from estimator_tpu_embedding.estimator.optimizer_parameters import _OptimizationParameters
from estimator_tpu_embedding.proto.codec import Config
from estimator_tpu_embedding.runner import progress

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / 'golden'
DECLARATIONS = all_declarations()


def golden(name):
    return text_format.Parse((GOLDENS / 'configs' / f'{name}.pbtxt').read_text(), Config())


@pytest.mark.parametrize('name', DECLARATIONS)
def test_a_declaration_gives_the_bytes_that_tensorflow_2_15_makes_of_it(name):
    ours, theirs = build(legacy_api, DECLARATIONS[name]).config_proto, golden(name)
    assert ours == theirs
    assert ours.SerializeToString(deterministic=True) == theirs.SerializeToString(
        deterministic=True)


def test_every_golden_has_its_declaration_and_there_are_more_than_sixty():
    assert set(DECLARATIONS) == {path.stem for path in (GOLDENS / 'configs').glob('*.pbtxt')}
    assert len(DECLARATIONS) > 60


@pytest.mark.parametrize('name', NAMES)
def test_arguments_have_the_order_and_the_defaults_of_the_original(name):
    ours = [[argument.name, repr(argument.default) if argument.default is not argument.empty
             else None] for argument in
            inspect.signature(functools.reduce(
                getattr, name.split('.'), legacy_api)).parameters.values()
            if argument.kind is not argument.VAR_KEYWORD]
    theirs = json.loads((GOLDENS / 'signatures.json').read_text())[name]
    assert ours == theirs


ERRORS = json.loads((GOLDENS / 'errors.json').read_text())


@pytest.mark.parametrize('name', BAD_CALLS)
def test_bad_calls_get_the_errors_of_the_original(name):
    kind, text = ERRORS[name]
    with pytest.raises(Exception) as caught:
        BAD_CALLS[name](legacy_api)
    ours = str(caught.value).replace('estimator_tpu_embedding.estimator.table_config',
                                     'tensorflow.python.tpu.tpu_embedding')
    if ' object at 0x' in text:  # of the original's optimizer; ours shows its arguments
        text, ours = (message.partition('Received')[0] for message in (text, ours))
    assert ours == text
    assert isinstance(caught.value, __builtins__[kind])


def test_a_rate_of_zero_on_a_table_is_kept():
    config = build(legacy_api, declaration(tables={
        'user': {'vocabulary_size': 7, 'dimension': 1, 'learning_rate': 0.},
        'item': {'vocabulary_size': 9, 'dimension': 1}})).config_proto
    rates = [table.optimization_parameters.learning_rate.constant
             for table in config.table_descriptor]
    assert rates == [pytest.approx(.1), 0.]  # item has the rate of the optimizer


def test_an_optimizer_of_the_users_own_is_refused_by_name():
    class Mine(_OptimizationParameters):
        pass

    with pytest.raises(UnsupportedError, match='E916 Mine: it must be one of the classes'):
        legacy_api.TPUEmbedding(
            {'t': legacy_api.TableConfig(5, 2, optimization_parameters=Mine())},
            {'f': legacy_api.FeatureConfig('t')}, 4, legacy_api.TRAINING, master='')


def test_what_the_original_lets_pass_and_no_engine_could_run_comes_in_one_error():
    with pytest.raises(ConfigError) as caught:
        build(legacy_api, declaration(tables={
            'user': {'vocabulary_size': 2**31, 'dimension': 1, 'learning_rate': -.5},
            'item': {'vocabulary_size': 9, 'dimension': 2**16 + 1,
                     'optimization_parameters': optimizer('Adagrad', float('nan'))}}))
    assert [problem.code for problem in caught.value.problems] == [
        'E413', 'E421', 'E412', 'E421']


def test_the_object_tells_hosts_cores_and_batch_and_has_its_dicts_sorted():
    made = build(legacy_api, declaration(hosts=2, cores=4, batch_per_core=3))
    assert made.hosts == [f'/job:worker/replica:0/task:{host}/device:CPU:0' for host in (0, 1)]
    assert (made.num_cores, made.num_cores_per_host, made.batch_size_per_core) == (8, 4, 3)
    assert list(made.table_to_config_dict) == ['item', 'user']
    assert list(made.feature_to_config_dict) == ['author', 'viewer', 'watched']
    assert made.table_to_features_dict == {'item': ['watched'], 'user': ['author', 'viewer']}
    assert made.optimization_parameters.learning_rate == .1
    inference = build(legacy_api, declaration(mode='INFERENCE'))
    assert inference.optimization_parameters.learning_rate == 1.


@pytest.mark.parametrize('system, lines', [
    ({'master': ''}, []), ({'master': 'local'}, []), ({'master': None}, []), ({}, []),
    ({'master': None, 'cluster_def': object()}, []),
    ({'master': 'grpc://10.0.0.2:8470'},
     ["TPUEmbedding(master='grpc://10.0.0.2:8470') means the emulated system: nothing is "
      'contacted']),
    ({'master': ['grpc://10.0.0.2:8470', b'\x1b']},
     ["TPUEmbedding(master=['grpc://10.0.0.2:8470', b'\\\\x1b']) means the emulated system: "
      'nothing is contacted'])])
def test_every_master_is_the_emulated_system_and_addresses_are_told(monkeypatch, system, lines):
    said = []
    monkeypatch.setattr(progress, '_sink', said.append)
    made = legacy_api.TPUEmbedding(
        {'t': legacy_api.TableConfig(5, 2)}, {'f': legacy_api.FeatureConfig('t')}, 4,
        legacy_api.TRAINING, optimization_parameters=legacy_api.AdamParameters(.1), **system)
    assert made.plan.topology.num_cores == 1
    assert said == lines


def test_enqueue_data_takes_tensors_apart_without_their_weights_indices():
    import tensorflow.compat.v1 as tf
    ids = tf.SparseTensor([[0, 0], [1, 1]], [3, 4], [2, 2])
    weights = tf.SparseTensor([[0, 1], [1, 0]], [.5, .25], [2, 2])
    made = legacy_api.EnqueueData.from_sparse_tensor(ids, weights)
    assert made == (ids.values, ids.indices, weights.values)
    ragged = tf.ragged.constant([[3], [4, 5]])
    (by_name,) = legacy_api.get_enqueue_datas_list_from_ragged_tensors_list([{'a': ragged}])
    assert by_name['a'].row_splits is ragged.row_splits
    assert by_name['a'].aggregation_weights is None
    (by_name,) = legacy_api.get_enqueue_datas_list_from_sparse_tensors_list([{'a': ids}])
    assert by_name['a'] == (ids.values, ids.indices, None)


def test_subclasses_of_the_ten_and_attributes_of_users_change_nothing():
    class Mine(legacy_api.AdagradParameters):
        def __init__(self, learning_rate):
            super().__init__(learning_rate)
            self.note = 'of the user'

    parameters = legacy_api.FtrlParameters(.1)
    parameters.note = 'of the user'
    assert Mine(.5).to_optimizer() == legacy_api.AdagradParameters(.5).to_optimizer()
    assert parameters.to_optimizer() == legacy_api.FtrlParameters(.1).to_optimizer()
