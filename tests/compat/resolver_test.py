"""Scripts count the cores of a TPU by its devices, print them, and place operations on them."""

import json

import pytest
from harness.processes import run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.compat import resolver
from estimator_tpu_embedding.core.specs import System

SCRIPT = '''
import json
import estimator_tpu_embedding
estimator_tpu_embedding.install(hosts=2, cores=2)
estimator_tpu_embedding.install(hosts=2, cores=2)
import tensorflow as tf

before = len(tf.config.list_physical_devices('TPU'))
resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='node-1')
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
cores = tf.config.list_logical_devices('TPU')
strategy = tf.distribute.TPUStrategy(resolver)
with tf.device(cores[3].name):
    total = tf.constant(1.) + 2.


@tf.function
def twice(x):
    with tf.device(cores[0].name):
        return 2 * x


config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
    with tf.device(cores[1].name):
        in_session = session.run(tf.constant(1.) + 4.)
faces = [tf, tf.compat.v1, tf.compat.v2]
print(json.dumps({
    'counts': [before, len(cores), strategy.num_replicas_in_sync] + [
        len(getattr(place, name)('TPU')) for face in faces
        for place in (face.config, face.config.experimental)
        for name in ('list_logical_devices', 'list_physical_devices')],
    'shown': str(cores[0]), 'kinds': [device.device_type for device in cores],
    'values': [float(total), float(twice(total)), float(in_session)]}))
'''


def test_there_is_a_device_per_replica_and_what_is_placed_there_runs():
    said = json.loads(run_python('-c', SCRIPT, loaded=True).stdout)
    assert said['counts'] == [4] * 15
    assert said['kinds'] == ['TPU'] * 4
    assert said['shown'] == "LogicalDevice(name='/device:TPU:0', device_type='TPU')"
    assert said['values'] == [3, 6, 5]


@pytest.fixture
def listed(monkeypatch):
    monkeypatch.setattr(resolver, '_last', None)
    monkeypatch.setattr(defaults, '_current', defaults.Defaults())
    return resolver.devices_listed()


def test_the_cores_are_those_of_the_system_that_was_found_last(listed):
    def count():
        return [len(function('TPU')) for function in listed.values()]

    assert count() == [1, 1]
    defaults.set_current(defaults.Defaults(system=System.sized(2, 4)))
    assert count() == [8, 8]
    ete.TPUClusterResolver(hosts=1, cores=3)
    assert count() == [3, 3]
    ete.TPUClusterResolver('node-1')
    assert count() == [8, 8]
