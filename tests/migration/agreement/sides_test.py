"""A side names the parts of a job, and says which of them are missing or of a wrong kind."""

import pytest
import tensorflow as tf

from estimator_tpu_embedding.migration import EstimatorSide, KerasSide, LoopSide, Side
from estimator_tpu_embedding.migration.agreement.sides import problems_of, seen_by


class Own:
    """A side of a user's own."""

    def train(self, checkpoint, steps):
        """Trains."""


@pytest.mark.parametrize('side, parts', [
    (EstimatorSide(None, 3), ['make_estimator', 'input_fn']),
    (EstimatorSide(print, print), []),
    (LoopSide(None, 3, 'step'), ['checkpoint', 'batches', 'step']),
    (LoopSide(tf.train.Checkpoint(), [], print), []),
    (KerasSide('ckpt-1', None, None), ['checkpoint', 'model', 'batches']),
    (Own(), [])])
def test_all_parts_that_are_missing_are_named_at_once(side, parts):
    problems = problems_of(side, 'side A')
    assert [problem.where for problem in problems] == [f'side A: {part}' for part in parts]
    assert {problem.code for problem in problems} <= {'E682'}


@pytest.mark.parametrize('stranger', [None, 3, {}, tf.Module()])
def test_an_object_without_train_is_no_side(stranger):
    problem, = problems_of(stranger, 'side B')
    assert problem.code == 'E682' and problem.where == 'side B'
    assert type(stranger).__name__ in problem.got


def test_an_estimator_alone_is_no_side():
    estimator = tf.Module()
    estimator.train, estimator.model_fn = print, print
    problem, = problems_of(estimator, 'side A')
    assert problem.code == 'E682' and 'EstimatorSide(make_estimator' in problem.remedy


def test_a_side_of_a_users_own_trains_as_it_is():
    side = Own()
    assert isinstance(side, Side) and seen_by(side, print) is side


def test_a_loop_restores_first_and_makes_one_step_more_for_an_update_that_comes_late(tmp_path):
    path = tf.train.Checkpoint(value=tf.Variable(5.)).write(str(tmp_path / 'ckpt'))
    value, seen = tf.Variable(0.), []
    side = LoopSide(tf.train.Checkpoint(value=value), 'abcdef',
                    lambda batch: seen.append((batch, float(value))))
    assert side.train(path, 2) == []
    assert seen == [('a', 5.), ('b', 5.), ('c', 5.)]


def test_an_object_that_the_checkpoint_lacks_is_a_remark(tmp_path):
    path = tf.train.Checkpoint(value=tf.Variable(5.)).write(str(tmp_path / 'ckpt'))
    side = LoopSide(tf.train.Checkpoint(other=tf.Variable(0., name='lonely')), [], print)
    remark, = side.train(path, 2)
    assert 'not restored' in remark and 'lonely' in remark
