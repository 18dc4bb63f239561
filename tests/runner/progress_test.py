"""The report of a run: its rate and its time leave out the start."""

import pytest

from estimator_tpu_embedding.runner import progress
from estimator_tpu_embedding.runner.progress import RunReport


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until a test sets it; it is 100 at first."""
    clock = {'now': 100.}
    monkeypatch.setattr(progress.time, 'monotonic', lambda: clock['now'])
    return clock


def made(clock, *runs, **kwargs):
    """A report of runs `(steps, seconds, seconds of their dense part)`, begun after 3 seconds."""
    report = RunReport('train', 10, kernels='native', **kwargs)
    clock['now'] += 3
    for steps, seconds, dense in runs:
        clock['now'] += seconds
        report.steps += steps
        report.time.dense += dense
        report.add_run(seconds)
    return report.last_line()


def test_the_first_run_is_the_start_and_is_left_out_of_rate_and_time(clock):
    # 2 steps of 10 samples in 4 s after it; 3 s of them are dense.
    assert made(clock, (2, 5., 1.), (1, 2., 2.), (1, 2., 1.)) == (
        'train: 4 steps, 5 examples/s, start 8.0 s, native kernels; time: input 0 %, lookup 0 %, '
        'dense 75 %, update 0 %, other 25 %; ids missing: none')


@pytest.mark.parametrize('cores, dense, advised', [(8, .9, True), (8, 1.1, False), (1, 0., False)])
def test_fewer_cores_are_advised_where_the_loop_takes_more_than_the_steps(
        clock, cores, dense, advised):
    line = made(clock, (1, 9., 0.), (1, 2., dense), cores=cores)
    assert (f'; steps are small for {cores} cores: fewer would be faster; ' in line) == advised
