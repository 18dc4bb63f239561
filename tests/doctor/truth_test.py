"""What the doctor says of sizes and of calls for TPUs is what happens when a program runs."""

import json

import pytest
import tensorflow.compat.v1 as tf
from harness.doctored import scanned
from harness.processes import run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.doctor import diagnose, traps
from estimator_tpu_embedding.estimator.tpu_context import deploy


def deployed(shards, of_replica, batch, resolver=None, mode=2):
    """Returns the message of the error with which a job of these sizes ends, or `''`."""
    config = ete.RunConfig(ete.TPUConfig(2, shards, of_replica, mode), cluster=resolver)
    try:
        deploy(config, 'train', batch)
    except (ValueError, RuntimeError) as error:
        return str(error)
    return ''


@pytest.mark.parametrize('of_replica', [1, 2, 4, 8])
def test_sizes_are_asked_for_exactly_where_a_job_needs_them_and_are_right(of_replica):
    for shards in range(1, 28):
        cores = shards * of_replica
        needed = diagnose.hosts_for(cores, of_replica)
        assert ('E410' in deployed(shards, of_replica, shards)) is (needed is not None), shards
        words = f'--hosts 1 {diagnose.sizes_for(cores, of_replica)}'.split()
        stated = dict(zip(words[::2], map(int, words[1::2])))
        resolver = ete.TPUClusterResolver(hosts=stated['--hosts'], cores=stated['--cores'])
        assert stated['--hosts'] * stated['--cores'] == cores
        assert deployed(shards, of_replica, shards, resolver) == '', shards


@pytest.mark.parametrize('mode', ['PER_HOST_V1', 'PER_HOST_V2', 'BROADCAST'])
def test_a_batch_is_reported_exactly_where_a_job_refuses_it(mode):
    for shards, batch in ((1, 7), (2, 7), (4, 12), (8, 12), (8, 4), (16, 128)):
        file = scanned(f'''
            from estimator_tpu_embedding import InputPipelineConfig, TPUConfig, TPUEstimator
            config = TPUConfig(2, {shards}, None, InputPipelineConfig.{mode})
            TPUEstimator(model_fn, config=config, train_batch_size={batch})''')
        told = any(each.code == 'W215' for each in traps.findings_of([file]))
        message = deployed(shards, None, batch, mode=getattr(ete.InputPipelineConfig, mode))
        assert told is ('E411' in message), (shards, batch, message)


FIXED = '''
import tensorflow.compat.v1 as tf
from estimator_tpu_embedding import InputPipelineConfig, TPUConfig
config = TPUConfig(2, 2, None, InputPipelineConfig.{mode})


def input_fn(params):
    batch = tf.data.Dataset.from_tensors({{'id': 1.}}).repeat().batch(4, drop_remainder=True)
    return {value}
'''


@pytest.mark.parametrize('mode, samples', [
    ('PER_HOST_V1', 2), ('PER_HOST_V2', 4), ('PER_SHARD_V1', 4)])
def test_a_fixed_batch_is_reported_exactly_where_each_core_takes_it_whole(tmp_path, mode, samples):
    source = FIXED.format(mode=mode, value='tf.data.make_one_shot_iterator(batch).get_next()'
                          if mode == 'PER_SHARD_V1' else 'batch')
    written, seen = {}, []
    exec(source, written)

    def model_fn(features, labels, mode, params):
        seen.append(features['id'].shape[0])
        loss = tf.reduce_mean(features['id'] * tf.get_variable('weight', []))
        optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1))
        return ete.TPUEstimatorSpec(
            mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))

    ete.TPUEstimator(model_fn, train_batch_size=4, config=ete.RunConfig(
        written['config'], model_dir=str(tmp_path))).train(written['input_fn'], steps=2)
    assert seen == [samples]
    told = any(each.code == 'W220' for each in traps.findings_of([scanned(source)]))
    assert told is (2 * samples > 4)


SCRIPT = '''
import json
import estimator_tpu_embedding
estimator_tpu_embedding.install(hosts=1, cores=2)
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu.ops import tpu_ops
tf.disable_v2_behavior()
said = {}


def attempt(name, build, **config):
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(**config)) as session:
        try:
            said[name] = repr(session.run(build()))
        except Exception as error:
            said[name] = type(error).__name__


def on_core():
    with tf.device(tf.tpu.core(0)):
        return tf.constant(3) * 2


def step(x):
    return tf.tpu.outside_compilation(lambda y: y * 2, x)


attempt('all_to_all', lambda: tpu_ops.all_to_all(tf.ones([2]), 0, 0, 1, [[0]]))
attempt('collective_permute', lambda: tpu_ops.collective_permute(tf.ones([2]), [[0, 0]]))
attempt('core', on_core)
attempt('core softly', on_core, allow_soft_placement=True)
attempt('outside_compilation', lambda: tf.tpu.rewrite(step, [tf.constant(3)])[0])
print(json.dumps(said))
'''


def test_what_has_no_kernel_raises_and_the_rest_computes():
    assert json.loads(run_python('-c', SCRIPT, loaded=True).stdout) == {
        'all_to_all': 'InvalidArgumentError', 'collective_permute': 'InvalidArgumentError',
        'core': 'InvalidArgumentError', 'core softly': 'np.int32(6)',
        'outside_compilation': 'np.int32(6)'}
