"""`etpe run` tells of trainings that it does not run itself, and of what they leave behind."""

import re
import textwrap

import pytest
from harness.processes import run_etpe

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.compat import plain_training
from estimator_tpu_embedding.defaults import Defaults

SCRIPT = '''
    import sys
    import tensorflow.compat.v1 as tf

    def data():
        return tf.data.Dataset.from_tensors(tf.ones([4, 2])).repeat()

    def model_fn(features, mode):
        loss = tf.reduce_mean(tf.layers.dense(features, 1) ** 2)
        train = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1)) if (
            is_tpu) else tf.train.GradientDescentOptimizer(.1)
        return spec(mode, loss=loss, train_op=train.minimize(loss, tf.train.get_global_step()))

    unsaved = dict(save_checkpoints_secs=None, save_checkpoints_steps=None)
    is_tpu, spec = False, tf.estimator.EstimatorSpec
    tf.estimator.Estimator(model_fn, sys.argv[1]).train(data, steps=3)
    tf.estimator.Estimator(model_fn, sys.argv[1]).train(data, max_steps=5)
    saver = tf.train.CheckpointSaverHook(sys.argv[2], save_steps=1)
    config = tf.estimator.RunConfig(**unsaved)
    tf.estimator.Estimator(model_fn, config=config).train(data, steps=1, hooks=[saver])

    class Own(tf.estimator.Estimator):
        pass

    try:
        Own(model_fn, config=config).train(lambda: data().map(
            lambda x: tf.cond(tf.random.uniform([]) < 2., lambda: 0 * x / 0, lambda: x)), steps=2)
    except tf.train.NanLossDuringTrainingError:
        print('diverged')
    is_tpu, spec = True, tf.estimator.tpu.TPUEstimatorSpec
    config = tf.estimator.tpu.RunConfig(
        cluster=tf.distribute.cluster_resolver.TPUClusterResolver(), **unsaved)
    tf.estimator.tpu.TPUEstimator(lambda features, labels, mode, params: model_fn(features, mode),
                                  config=config, train_batch_size=4).train(
        lambda params: data(), steps=1)
'''


def test_every_training_is_told_with_its_steps_and_where_it_lies(tmp_path):
    (tmp_path / 'job.py').write_text(textwrap.dedent(SCRIPT))
    done = run_etpe('run', tmp_path / 'job.py', tmp_path / 'm', tmp_path / 'hook', loaded=True)
    assert (done.returncode, done.stdout) == (0, 'diverged\n')
    said = [line.removeprefix('[etpe] ') for line in done.stderr.splitlines()
            if line.startswith('[etpe] ')]
    unsaved = ('W007 RunConfig: this training leaves no checkpoint; got '
               'save_checkpoints_steps=None and save_checkpoints_secs=None.  '
               'Set one of them to keep what is trained.')
    rate, time = r'[\d,.]+ steps/s', r'time: input \d+ %, dense \d+ %, other \d+ %'
    expected = [
        rf'train: 3 steps by Estimator, {rate}, start [\d.]+ s; saved in {tmp_path}/m',
        rf'train: 2 steps by Estimator, {rate}, start [\d.]+ s; saved in {tmp_path}/m',
        rf'train: 1 step by Estimator, {rate}; saved in \S+',  # by its hook, as it says
        re.escape(unsaved),
        rf'train: 1 step by Own, {rate}',
        re.escape(unsaved),
        r'train: global 4 = 1 host x 1 core x 4',
        rf'train: 1 step, [\d,]+ examples/s; {time}',
        rf'in all: train 6 steps by Estimator, {rate}, saved in {tmp_path}/m, \S+; '
        rf'train 1 step by Own, {rate}, nothing saved; '
        rf'train 1 step, [\d,]+ examples/s, nothing saved; {time}']
    for line, pattern in zip(said, expected, strict=True):
        assert re.fullmatch(pattern, line), (pattern, line)


@pytest.mark.parametrize('of_config, of_process, lines', [
    (None, ClusterChoice(), 0), (['127.0.0.1:1'], ClusterChoice(), 1),
    (None, ClusterChoice(processes=2), 1)])
def test_a_training_that_uses_no_workers_says_so_if_some_were_chosen(
        of_config, of_process, lines, monkeypatch, tmp_path):
    said = []
    monkeypatch.setattr(plain_training, 'announce', said.append)
    monkeypatch.setattr(defaults, '_current', Defaults(cluster=of_process))
    plain_training._tell_of_workers(ete.TPUEstimator(
        lambda features, mode, params: None, use_tpu=False, train_batch_size=2,
        config=ete.RunConfig(model_dir=str(tmp_path), workers=of_config)))
    assert [line[:34] for line in said] == ['W701 TPUEstimator without TPU: it '] * lines
