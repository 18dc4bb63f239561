"""Jobs run on a TPU by the original's TPUEstimator; here our kernels of its operations are the TPU.

They compute one replica, so it has one core.
"""

import json

import pytest
from harness.graphs import needs_native
from harness.parts import soak_except
from harness.processes import run_harness, run_python

pytestmark = needs_native


def job(model_dir, *arguments):
    """Runs `harness.fake_tpu_job`; an operation that waits keeps one of the threads."""
    return run_harness('fake_tpu_job', model_dir, *arguments, TF_NUM_INTEROP_THREADS='16')


def told(done):
    assert done.returncode == 0
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope='module')
def emulated(tmp_path_factory):
    """What the job tells of its results, its tables and slots, if the TPU is emulated."""
    return told(job(tmp_path_factory.mktemp('emulated') / 'model', 'emulated'))


def test_a_run_on_a_tpu_gives_the_bits_of_an_emulated_one(tmp_path, emulated):
    """Also of an evaluation, and of predictions, which a TPU makes without tables."""
    assert emulated['global_step'] == 6 and emulated['is_exported']
    assert told(job(tmp_path / 'model', 'tpu')) == emulated


@pytest.mark.soak
@pytest.mark.parametrize('first, second', [('emulated', 'tpu'), ('tpu', 'emulated')])
def test_each_backend_goes_on_from_checkpoints_of_the_other(tmp_path, emulated, first, second):
    done = job(tmp_path / 'model', first, '0', '', '2')
    assert told(done)['global_step'] == 2
    manifest = tmp_path / 'model' / 'model.ckpt-2.tables.json'
    assert manifest.exists() == (first == 'emulated')
    assert told(job(tmp_path / 'model', second)) == emulated
    assert not manifest.exists()  # The original begins with a save of the same step.


def test_h24_a_lost_tpu_ends_the_job_with_an_error_that_names_it(tmp_path):
    done = job(tmp_path / 'model', 'tpu', '4')
    assert done.returncode == 1 and 'the TPU is lost' in done.stderr
    assert 'SessionLostError: E802 TPU: it must answer' in done.stderr


@pytest.mark.soak
def test_h24_a_tpu_that_is_there_again_trains_to_the_end(tmp_path, emulated):
    done = job(tmp_path / 'model', 'tpu', '4', 'returns')
    assert 'the TPU is lost' in done.stderr and told(done) == emulated


@pytest.mark.soak
def test_h24_a_tpu_that_is_lost_again_and_again_ends_the_job(tmp_path):
    done = job(tmp_path / 'model', 'tpu', '4', 'and is lost again')
    assert done.returncode == 1 and done.stderr.count('the TPU is lost') == 5
    assert 'SessionLostError: E802 sessions on the TPU: one must save a step' in done.stderr


@pytest.mark.parametrize('argument, address, got', soak_except([
    ('master', '', '1 devices: /job:localhost'), ('master', 'grpc://127.0.0.1:9', 'Error'),
    ('cluster', 'grpc://192.0.2.1:8470', 'Deadline')], 2))
def test_without_a_tpu_a_job_says_what_it_looked_for(tmp_path, argument, address, got):
    done = run_python('-c', WITHOUT, tmp_path / 'model', argument, address)
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert f"E939 TPU at {repr(address) if address else 'this machine'}: a device of" in error
    assert got in error and 'UnsupportedError' in error
    assert 'W462' in done.stderr and 'no effect on a TPU; got id_policy.' in done.stderr


def test_a_name_that_no_cloud_knows_is_the_same_error(tmp_path):
    done = run_python('-c', WITHOUT, tmp_path / 'model', 'cluster', 'my-tpu')
    assert done.returncode == 1
    assert 'E939 TPUClusterResolver: it must find a TPU; got ' in done.stderr.splitlines()[-1]


WITHOUT = """
import sys
import estimator_tpu_embedding as ete
ete.install(backend='tpu')
import tensorflow.compat.v1 as tf
_, model_dir, argument, address = sys.argv
if argument == 'cluster':
    address = tf.distribute.cluster_resolver.TPUClusterResolver(address)
estimator = ete.TPUEstimator(
    lambda features, labels, mode: None, model_dir, ete.RunConfig(
        id_policy='drop', **{argument: address}), train_batch_size=8)
estimator.train(lambda params: None, steps=1)
"""
