"""Saves of a cluster of real processes that fail or are killed."""

import dataclasses

import numpy as np
import pytest
from harness import jobs
from harness.workers import running

from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.cluster.choice import ClusterChoice
from estimator_tpu_embedding.errors import CheckpointWriteError

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def exposed():
    """The server of this process may listen beside an interface of the machine."""
    before = defaults.current()
    defaults.set_current(dataclasses.replace(before, cluster=ClusterChoice(expose=True)))
    yield
    defaults.set_current(before)


ROWS, WIDTH = 4000, 4
INPUT = jobs.input_fn_of([
    {'a': np.arange(8).reshape(4, 2) + 8 * step, 'label': np.ones(4, np.float32)}
    for step in range(40)])
COLUMNS = [jobs.embedding('a', ROWS, WIDTH)]


def job_on(workers, directory, **kwargs):
    return jobs.estimator(
        jobs.linear_model_fn(COLUMNS), COLUMNS,
        jobs.run_config(directory, hosts=len(workers.addresses), iterations=1,
                        workers=workers.addresses, **kwargs), batch_size=4, strategy='mod')


def test_a_save_that_fails_on_one_task_names_that_task(tmp_path):
    """Host 1 may write files of at most 20,000 bytes, and its rows and slots have 64,000."""
    with running(2, before={1: ['prlimit', '--fsize=20000']}) as workers:
        with pytest.raises(CheckpointWriteError) as caught:
            job_on(workers, tmp_path).train(INPUT, max_steps=1)
    print(caught.value)
    assert 'host 1' in str(caught.value)
