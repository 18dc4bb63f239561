"""Whole jobs on a cluster: their numbers are those of the same hosts in one process."""

import contextlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.network import require_private_network
from harness.tasks import Owners, Tasks, hosted_by

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.checkpoint import profile_files
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.defaults import Defaults

pytestmark = pytest.mark.no_rerun
BATCH, SAMPLES, STEPS = 12, 48, 4
SPARSE = 'g', 'w', 'walk', 'one'
Mode = ete.InputPipelineConfig


def arrays():
    """Features of all samples; the gradients of one of them are not finite if `poison` is 0."""
    generator = np.random.default_rng(3)
    poison = np.ones([SAMPLES, 1], np.float32)
    poison[BATCH + 5] = 0
    return {'f': generator.integers(11, size=[SAMPLES, 2]), 'g': generator.integers(
                11, size=[SAMPLES, 3]), 'w': generator.uniform(.5, 2, [SAMPLES, 3]).astype('f'),
            'one': np.zeros([SAMPLES, 1], np.int64), 'walk': generator.integers(
                9, size=[SAMPLES, 2]), 'poison': poison}, generator.uniform(
                    size=SAMPLES).astype(np.float32)


def sparse(dense):
    return tf.SparseTensor(tf.where(tf.ones_like(dense, tf.bool)), tf.reshape(dense, [-1]),
                           tf.shape(dense, out_type=tf.int64))


def input_fn_of(samples=None, bad_ids=False):
    """Deals the samples out to the calls; endless, or so many, the last batch with a rest."""
    def input_fn(params):
        _, call, calls, _ = params['context'].current_input_fn_deployment()
        features, labels = arrays()
        if bad_ids:
            features['f'][::3, 0] += 100
        data = tf.data.Dataset.from_tensor_slices((features, labels)).take(
            SAMPLES if samples is None else samples).shard(calls, call)
        if samples is None:
            data = data.repeat()
        return data.batch(params['batch_size'], drop_remainder=samples is None).map(
            lambda features, labels: ({name: sparse(values) if name in SPARSE
                                       else values for name, values in features.items()}, labels))
    return input_fn


def model_fn_of(poisoned):
    def model_fn(features, labels, mode, params):
        net = tf.concat([features['f'], features['g'], features['one'],
                         tf.reshape(features['walk'], [-1, 4])], 1)
        hidden = tf.layers.dense(net, 5, tf.nn.relu,
                                 kernel_initializer=tf.glorot_uniform_initializer(seed=1))
        logits = tf.layers.dense(hidden, 1, kernel_initializer=tf.ones_initializer())[:, 0]
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions={'y': logits, 'net': net})
        loss = tf.reduce_mean(tf.square(logits - labels))
        if poisoned:
            loss += 1e-30 * tf.reduce_sum(tf.sqrt(features['poison'] * tf.square(net)))
        train_op = None
        if mode == 'train':
            train_op = ete.CrossShardOptimizer(tf.train.AdagradOptimizer(.1)).minimize(
                loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=(
            lambda labels, logits: {'mean': tf.metrics.mean(logits - labels)}, [labels, logits]))
    return model_fn


def slowing(step):
    return 1. / tf.cast(step + 2, tf.float32)


CASES = {  # hosts, cores, and what differs from a plain job
    'all in one': (2, 2, {'profiled': True, 'table': {'learning_rate_fn': slowing},
                          'spec': {'experimental_gradient_multiplier_fn': slowing}}),
    'div, pipelined': (2, 1, {'spec': {'partition_strategy': 'div',
                                       'pipeline_execution_with_tensor_core': True}}),
    'three hosts, adam': (3, 1, {'optimizer': ete.AdamParameters(.1)}),
    'one host, ftrl': (1, 2, {'optimizer': ete.FtrlParameters(.1)}),
    'no accumulation': (3, 2, {'optimizer': ete.AdagradParameters(
        .1, use_gradient_accumulation=False)}),
    'combiner sqrtn': (2, 1, {'table': {'combiner': 'sqrtn'}}),
    'steps that are skipped': (3, 1, {'poisoned': True, 'run': {'nonfinite_gradients': 'skip'}}),
    'ids of a policy': (2, 2, {'bad_ids': True, 'run': {'id_policy': 'mod'}}),
    'a call per host': (2, 2, {'mode': Mode.PER_HOST_V1})}


def estimator_of(directory, hosts, cores, *, mode=Mode.PER_HOST_V2, table=None, spec=None,
                 optimizer=None, run=None, poisoned=False, profiled=False, bad_ids=False):
    first = {name: np.random.default_rng(rows).normal(size=[rows, width])
             for name, rows, width in (('t', 11, 3), ('u', 1, 2), ('s', 9, 2))}
    own = {'t': {'combiner': 'mean', **(table or {})}, 'u': {'combiner': 'sum'},
           's': {'combiner': None}}
    tables = {name: ete.TableConfig(*values.shape, tf.constant_initializer(values), **own[name])
              for name, values in first.items()}
    features = {'f': ete.FeatureConfig('t'), 'g': ete.FeatureConfig('t', weight_key='w'),
                'one': ete.FeatureConfig('u'), 'walk': ete.FeatureConfig(
                    's', max_sequence_length=2)}
    spec = dict(spec or {})
    if profiled:
        spec['profile_data_directory'] = str(directory / 'profiles')
    return ete.TPUEstimator(
        model_fn_of(poisoned), train_batch_size=BATCH, eval_batch_size=BATCH,
        predict_batch_size=BATCH, config=ete.RunConfig(
            cluster=ete.TPUClusterResolver(hosts=hosts, cores=cores), model_dir=str(directory),
            tpu_config=ete.TPUConfig(iterations_per_loop=2, per_host_input_for_training=mode),
            save_summary_steps=2, save_checkpoints_steps=100, log_step_count_steps=2,
            tf_random_seed=1, **(run or {})),
        embedding_config_spec=ete.EmbeddingConfigSpec(
            table_to_config_dict=tables, feature_to_config_dict=features,
            optimization_parameters=optimizer or ete.AdagradParameters(.3),
            **{'partition_strategy': 'mod', **spec}))


def summaries_of(directory):
    """What summaries say of tables and losses, by tag and step."""
    return {(value.tag, event.step): value.simple_value for path in directory.glob('events*')
            for event in tf.train.summary_iterator(str(path)) for value in event.summary.value
            if 'sec' not in value.tag}


def numbers_of(directory, cluster, case):
    """What a job trains, evaluates, predicts and counts: numbers by name."""
    hosts, cores, options = CASES[case]
    made = estimator_of(directory, hosts, cores, **options)
    input_fn = input_fn_of(bad_ids='bad_ids' in options)
    with cluster:
        made.train(input_fn, steps=STEPS)
        found = {name: made.get_variable_value(name) for name in made.get_variable_names()}
        found |= {f'summary {name}': value for name, value in summaries_of(directory).items()}
        found |= {f'eval {name}': value for name, value in made.evaluate(
            input_fn, steps=2).items()}
        # 29 samples: the last batch of each host has padding.
        rows = list(made.predict(input_fn_of(29, 'bad_ids' in options)))
        found |= {f'predicted {name}': np.stack([row[name] for row in rows]) for name in rows[0]}
        assert len(rows) == 29
    if 'profiled' in options:
        found['profiles'] = [one.features for one in profile_files.read_all(
            str(directory / 'profiles'))]
    return found


@contextlib.contextmanager
def on_processes(hosts):
    """While the body runs, the hosts of jobs are processes of their own."""
    require_private_network()
    before = defaults.current()
    defaults.set_current(Defaults(cluster=ClusterChoice(processes=hosts, expose=True)))
    try:
        yield
    finally:
        defaults.set_current(before)


def assert_same(one, other, **tolerance):
    assert one.keys() == other.keys()
    for name, value in one.items():
        if name == 'profiles':
            assert value == other[name]
        elif tolerance:
            np.testing.assert_allclose(value, other[name], err_msg=name, **tolerance)
        else:
            np.testing.assert_array_equal(value, other[name], name)


ON_PROCESSES = ['all in one', 'three hosts, adam', 'one host, ftrl', 'no accumulation',
                'steps that are skipped']


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize('case', CASES)
def test_a_job_elsewhere_has_the_bits_of_owners_in_one_process_and_nearly_those_of_one_engine(
        tmp_path, case):
    """Elsewhere is on processes of their own, or for the other cases on tasks of this process."""
    hosts, is_first = CASES[case][0], case == next(iter(CASES))
    owners = numbers_of(tmp_path / 'owners', hosted_by(Owners(hosts)), case)
    for number in range(1 + is_first):
        elsewhere = on_processes(hosts) if case in ON_PROCESSES else hosted_by(Tasks(hosts))
        assert_same(numbers_of(tmp_path / str(number), elsewhere, case), owners)
    assert_same(numbers_of(tmp_path / 'one', hosted_by(None), case), owners, rtol=1e-5, atol=2e-6)
    assert any('tpu_embedding' in name for name in owners)
