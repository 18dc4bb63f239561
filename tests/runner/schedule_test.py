"""How many steps each run of a session makes, without a session."""

import pytest

from estimator_tpu_embedding.hosts.backend import QUEUE_CAPACITY
from estimator_tpu_embedding.runner.pace import FixedPace
from estimator_tpu_embedding.runner.progress import RunReport
from estimator_tpu_embedding.runner.schedule import (
    EvaluationSchedule,
    Loop,
    PredictionSchedule,
    TrainingSchedule,
)


class Stop:
    """Stands for a `StopAtStep` of a training to step 10."""

    final_step = 10

    def __init__(self, left):
        self._left = left

    def steps_left(self, session):
        return self._left


@pytest.mark.parametrize('left, want', [(7, Loop(4, 3)), (3, Loop(3, 0)), (0, Loop(1, 0))])
def test_a_training_makes_loops_of_its_pace_up_to_its_last_step(left, want):
    report = RunReport('train', 4, steps=2)
    assert TrainingSchedule(FixedPace(4), Stop(left)).next_loop(None, report) == want
    assert report.first_step == 8 - left


def test_an_evaluation_is_one_loop_and_a_prediction_one_step_at_a_time():
    report = RunReport('evaluate', 4)
    assert EvaluationSchedule(5).next_loop(None, report) == Loop(5, 0)
    report = RunReport('predict', 4)
    assert PredictionSchedule().next_loop(None, report) == Loop(1, QUEUE_CAPACITY)
