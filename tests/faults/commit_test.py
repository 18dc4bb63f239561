"""C01 to C04, C06, C30, C32: a job that an error or a kill meets at any operation of a commit."""

import os
import re

import pytest
from harness import sweeps
from harness.checkpoints import commit, describe, writer
from harness.faults import ERRORS, Faults, FaultyStorage
from harness.processes import run_harness

from estimator_tpu_embedding.checkpoint.commit import Saved
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import CheckpointWriteError, NonFiniteCheckpointError

pytestmark = pytest.mark.no_rerun
STEPS = [1, 2, 3]


@pytest.fixture(scope='module')
def found_after(tiny, tmp_path_factory):
    """[(operation, the step that was found after a kill there)] of three steps, in order."""
    parent = '/dev/shm' if os.access('/dev/shm', os.W_OK) else tmp_path_factory.mktemp('kills')
    done = run_harness('sweeps', tiny.directory, parent)
    assert done.returncode == 0, done.stderr
    return [(operation, None if step == 'None' else int(step)) for operation, step in
            (line.rsplit(': ', 1) for line in done.stdout.splitlines())]


@pytest.mark.parametrize('step', STEPS)
def test_c01_c02_c03_a_kill_costs_only_a_step_that_is_not_published(found_after, step):
    first, after = (f'make folder .ete-stage-{number}-' for number in (step, step + 1))
    operations = [operation for operation, _ in found_after]
    begin = next(at for at, one in enumerate(operations) if one.startswith(first))
    end = next((at for at, one in enumerate(operations) if one.startswith(after)), len(operations))
    manifest = f'model.ckpt-{step}.tables.json'
    published = operations.index(f'rename {manifest}.partial {manifest}') + 1
    assert [found or 0 for _, found in found_after[begin:end]] == [
        step - 1] * (published - begin) + [step] * (end - published)
    assert published - begin > 15 and end - published > 5
    assert sum(one.startswith('write ') for one in operations[begin:end]) == 4


def test_c30_a_step_that_is_half_deleted_is_not_seen(found_after):
    # What is left then goes away in the next job: `sweeps.check_goes_on`.
    assert [operation for operation, step in found_after
            if re.fullmatch(r'remove model\.ckpt-1\..*', operation) and step == 3] == [
        f'remove model.ckpt-1{suffix}' for suffix in (
            '.data-00000-of-00002', '.data-00001-of-00002', '.index', '.meta',
            '.tables.json.partial')]


def test_c04_the_step_that_was_restored_is_not_written_again(memory_folder, tiny):
    sweeps.live_in(memory_folder, tiny, [1, 2])
    before = [sweeps.marks(memory_folder, step) for step in (1, 2)]
    faults = Faults(1, 'EIO')  # There is to be no first operation.
    sweeps.live_in(memory_folder, tiny, [2], faults)
    assert not faults.log
    assert before == [sweeps.marks(memory_folder, step) for step in (1, 2)]


@pytest.mark.parametrize('suffix', ['.index', '.data-00001-of-00002', '.meta', '.tables.json'])
def test_c04_unless_it_is_damaged(memory_folder, tiny, suffix):
    sweeps.live_in(memory_folder, tiny, [1, 2])
    os.truncate(f'{memory_folder}/model.ckpt-2{suffix}', 10)
    assert recover(memory_folder).step == 1
    sweeps.live_in(memory_folder, tiny, [2])
    assert sweeps.check(memory_folder, tiny, 2) == 2


def error_at(directory, tiny, at, kind, lasting):
    """Commits three steps with an error at an operation; returns whether it came to its end."""
    faults = Faults(at, kind, lasting)
    with FaultyStorage(directory, faults) as storage:
        try:
            sweeps.live(storage, tiny, STEPS)
        except CheckpointWriteError as error:
            returned = storage.returned
            assert error.code == 'E621' and f'step {len(returned) + 1}' in str(error)
            assert os.strerror(28 if kind == 'ENOSPC' else 5) in str(error)
        else:
            return True
    found = sweeps.check(directory, tiny, returned[-1] if returned else None, len(returned) + 1)
    left = [name for name in os.listdir(directory) if name.startswith('.ete-stage')]
    assert lasting or not left
    sweeps.check_goes_on(directory, tiny, found)
    return False


@pytest.mark.parametrize('kind, lasting', [(kind, lasting) for kind in ERRORS
                                           for lasting in (False, True)])
def test_c06_an_error_at_any_operation_leaves_what_was_committed(memory_folder, tiny, kind,
                                                                 lasting):
    at, ended = 0, False
    while not ended:
        at += 1
        with sweeps.folder(memory_folder) as directory:
            ended = error_at(directory, tiny, at, kind, lasting)
    assert at > 80


def test_c32_what_is_not_finite_is_not_committed(memory_folder, tiny):
    with FaultyStorage(memory_folder, Faults()) as storage:
        sweeps.live(storage, tiny, [1])
        with pytest.raises(NonFiniteCheckpointError) as caught:
            commit(storage, 2, writer(float('nan')), describe(2), saved=[Saved(1)])
    assert [problem.code for problem in caught.value.problems] == ['E620', 'E620']
    for fact in ('variable "t"', 'variable "t/Adagrad"', 'step 2', '7 rows', 'model.ckpt-1'):
        assert fact in str(caught.value)
    assert sweeps.check(memory_folder, tiny, 1) == 1
    assert not [name for name in os.listdir(memory_folder) if name.startswith('.ete-stage')]
