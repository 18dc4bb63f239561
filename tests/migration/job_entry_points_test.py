"""A side names the parts of a job, and trains it."""

import pytest
import tensorflow as tf

from estimator_tpu_embedding.errors import CallError
from estimator_tpu_embedding.migration import LoopSide
from estimator_tpu_embedding.migration.job_entry_points import problems_of


def test_an_estimator_alone_is_no_side():
    estimator = tf.Module()
    estimator.train, estimator.model_fn = print, print
    problem, = problems_of(estimator, 'side A')
    assert problem.code == 'E682' and 'EstimatorSide(make_estimator' in problem.remedy


def test_a_loop_restores_trains_and_saves(tmp_path):
    path = tf.train.Checkpoint(value=tf.Variable(5.)).write(str(tmp_path / 'ckpt'))
    value, seen = tf.Variable(0.), []

    def step(batch):
        seen.append((batch, float(value)))
        value.assign_add(1.)

    side = LoopSide(tf.train.Checkpoint(value=value), 'abc', step)
    assert side.train(path, 2, str(tmp_path)) == [] and seen == [('a', 5.), ('b', 6.)]
    saved = tf.train.latest_checkpoint(str(tmp_path))
    assert tf.train.load_variable(saved, 'value/.ATTRIBUTES/VARIABLE_VALUE') == 7
    with pytest.raises(CallError, match='E687 .*must make and save 4 steps; got 3'):
        side.train(path, 4, str(tmp_path))


def test_an_object_that_the_checkpoint_lacks_is_a_remark(tmp_path):
    path = tf.train.Checkpoint(value=tf.Variable(5.)).write(str(tmp_path / 'ckpt'))
    side = LoopSide(tf.train.Checkpoint(other=tf.Variable(0., name='lonely')), [], print)
    remark, = side.train(path, 0, str(tmp_path))
    assert 'not restored' in remark and 'lonely' in remark
