"""What install() changes: global state, so each test has a process of its own."""

import pytest
from harness.network import require_private_network
from harness.processes import free_addresses, run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.cluster import listening
from estimator_tpu_embedding.cluster.host_errors import HostUnavailableError
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.compat import environment, tpu_functions
from estimator_tpu_embedding.errors import ExposedServerError, SetupError


def check(code, loaded=False, **environment):
    done = run_python('-c', code, loaded=loaded, **environment)
    assert done.returncode == 0
    return done


def test_a_system_tells_its_topology_to_those_who_assign_devices():
    check('''
import estimator_tpu_embedding
estimator_tpu_embedding.install(hosts=2, cores=4)
import tensorflow.compat.v1 as tf
with tf.Graph().as_default(), tf.Session() as session:
    topology = tf.tpu.experimental.Topology(session.run(tf.tpu.initialize_system()))
    assert (topology.num_tasks, topology.num_tpus_per_task) == (2, 4)
    assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology, computation_shape=[1, 1, 1, 1], num_replicas=8)
    assert sorted(assignment.host_device(core)[-5:] for core in range(8)) == ["CPU:0"] * 8
    session.run(tf.tpu.shutdown_system())
''', loaded=True)


def test_importing_the_package_alone_changes_nothing_and_loads_nothing_heavy():
    check('''
import os, sys
import estimator_tpu_embedding
from estimator_tpu_embedding import midlevel
assert 'TPUEstimator' in dir(estimator_tpu_embedding)
assert {'TPUEmbedding', 'TPUStrategy', 'is_tpu_strategy'} <= set(dir(midlevel))
assert not hasattr(midlevel, 'Extended')
assert not {'tensorflow', 'numpy', 'google.protobuf'} & set(sys.modules)
assert 'TF_USE_LEGACY_KERAS' not in os.environ
''')


def test_names_of_the_package_work_without_install_and_leave_tensorflow_as_it_is():
    check('''
from estimator_tpu_embedding import TPUEstimator, TPUClusterResolver, CrossShardOptimizer
import tensorflow as tf
import importlib, sys
assert not hasattr(tf, 'estimator')
assert not hasattr(tf.data.experimental, 'CheckpointInputPipelineHook')
for path in ('tensorflow.python.tpu.tpu_embedding', 'tensorflow.python.estimator',
             'tensorflow.compat.v1.estimator', 'tensorflow.python.tpu.session_support'):
    try:
        importlib.import_module(path)
    except ModuleNotFoundError:
        continue
    raise AssertionError(path)
assert not [finder for finder in sys.meta_path if 'estimator_tpu' in type(finder).__module__]
assert not hasattr(tf.compat.v1.tpu.experimental, 'AdagradParameters')
assert tf.distribute.cluster_resolver.TPUClusterResolver is not TPUClusterResolver
from estimator_tpu_embedding.midlevel import TPUEmbedding, TPUStrategy
assert tf.tpu.experimental.embedding.TPUEmbedding is not TPUEmbedding
assert tf.distribute.TPUStrategy is not TPUStrategy
assert issubclass(CrossShardOptimizer, tf.compat.v1.tpu.CrossShardOptimizer)
''')


def test_install_again_changes_only_the_size():
    check('''
import estimator_tpu_embedding as ete
try:
    ete.install(hosts=2, cores=4, kernels='')
except ete.ConfigError as error:
    assert "E474 etpe run or install()" in str(error), error
else:
    raise AssertionError('an empty word is no kind of kernels')
ete.install(hosts=2, cores=4)
import tensorflow.compat.v1 as tf
before = tf.estimator
ete.install(hosts=3)
assert tf.estimator is before
assert tf.tpu.CrossShardOptimizer.apply_gradients is ete.CrossShardOptimizer.apply_gradients
resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
assert str(resolver.emulated_system.topology) == '3 hosts x 1 core'
''', loaded=True)


def test_tensorflow_imported_before_the_legacy_keras_switch_is_one_clear_error():
    done = run_python('-c', 'import tensorflow, estimator_tpu_embedding; '
                      'estimator_tpu_embedding.install()')
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        'estimator_tpu_embedding.errors.SetupError: E001 TF_USE_LEGACY_KERAS: it must be '
        'set to 1 before TensorFlow is first imported, since estimators need Keras 2; got '
        'TensorFlow imported without it.  Import estimator_tpu_embedding and call install() '
        'before "import tensorflow", set TF_USE_LEGACY_KERAS=1 in the environment, or start the '
        'script with "etpe run".')


def test_all_missing_packages_are_one_error():
    with pytest.raises(SetupError) as caught:
        environment.check_packages({
            'tensorflow': 'tensorflow', 'absent_a': 'a-1', 'absent_b': 'b==2'})
    assert str(caught.value) == ('E002 environment: tensorflow, absent_a, absent_b must be '
                                 'importable; got no a-1, b==2.  pip install a-1 b==2')


def test_variables_that_direct_workers_are_named_as_without_effect(monkeypatch):
    assert environment.variables_without_effect() == []
    monkeypatch.setenv('TF_TPU_WATCHDOG_TIMEOUT', '60')
    monkeypatch.setenv('TF_TPU_GRACEFUL_SHUTDOWN_MODE', 'shutdown_worker')
    assert list(map(str, environment.variables_without_effect())) == [
        'W462 TF_TPU_GRACEFUL_SHUTDOWN_MODE: it has no effect: there are no workers to direct '
        'here; got shutdown_worker.',
        'W462 TF_TPU_WATCHDOG_TIMEOUT: it has no effect: there are no workers to direct here; '
        'got 60.']


def test_with_the_switch_set_tensorflow_may_be_imported_first():
    check('import tensorflow, estimator_tpu_embedding; estimator_tpu_embedding.install()',
          TF_USE_LEGACY_KERAS='1')


def test_what_the_nightly_lacks_in_this_tensorflow_says_so_when_it_is_asked_for():
    check('''
import estimator_tpu_embedding
estimator_tpu_embedding.install()
import tensorflow as tf
from tensorflow.python.distribute import estimator_training
from tensorflow.python.tpu import tpu_embedding
assert 'tf_keras' in tf.compat.v1.keras.layers.Dense.__module__
assert not hasattr(tpu_embedding, 'resolve')  # What our module imports is no name of it.
try:
    estimator_training.absent
except AttributeError as error:
    assert 'was deleted in TensorFlow 2.16' in str(error)
else:
    raise AssertionError
''', loaded=True)


@pytest.mark.parametrize('chosen', [
    {'processes': 2}, {'workers': '127.0.0.1:1'}, {'workers': 'from-script'}])
def test_h13_workers_where_others_reach_this_machine_are_refused_before_anything_else(
        chosen, monkeypatch):
    monkeypatch.setattr(listening, 'interfaces', lambda: {'eth9': '10.0.0.3'})
    with pytest.raises(ExposedServerError,
                       match=r'E705 the workers of this job: .*got eth9 \(10.0.0.3\)'):
        ete.install(**chosen)


def test_h02_workers_are_contacted_before_a_script_runs(monkeypatch):
    require_private_network()
    nobody, = free_addresses(1)
    monkeypatch.setattr(defaults, '_current', defaults.Defaults())
    tpu_functions.contact_workers()  # There are none, so nothing happens.
    monkeypatch.setattr(defaults, '_current', defaults.Defaults(
        cluster=ClusterChoice((nobody,), expose=True, connect_deadline=.5)))
    with pytest.raises(HostUnavailableError, match=f'E707 worker {nobody}.* connection refused'):
        tpu_functions.contact_workers()
