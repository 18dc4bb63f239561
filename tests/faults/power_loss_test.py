"""C05: whatever a loss of power leaves of the operations of a commit, nothing committed is lost."""

import os

import pytest
from harness import power_loss, sweeps
from harness.faults import Faults
from harness.parts import soak_except
from harness.power_loss import RecordingStorage

from estimator_tpu_embedding.checkpoint import pointer
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import CheckpointWriteError

pytestmark = pytest.mark.no_rerun


def restored(directory):
    """What the next job restores."""
    found = recover(directory)
    return None if found is None else (found.prefix, found.step)


def believed(directory):
    """What a reader restores that believes the file `checkpoint`, as TensorFlow does."""
    named = pointer.read(directory)
    return None if named is None else (
        os.path.join(directory, named.newest), int(named.newest.rpartition('-')[2]))


def broken(storage, tiny, read=restored):
    """What is wrong in the first state after a loss of power where something is."""
    return next(power_loss.broken_promises(storage, read, tiny.is_at), None)


class Careless(RecordingStorage):
    """Leaves out some of what it is asked to sync."""

    def __init__(self, directory, left_out):
        super().__init__(directory)
        self._left_out = left_out

    def sync(self, name=''):
        if not self._left_out(name):
            super().sync(name)


@pytest.mark.parametrize('kept, steps', soak_except([(2, [1, 2, 3]), (1, [1, 2])], 1))
def test_c05_no_loss_of_power_loses_a_step_that_was_committed(memory_folder, tiny, kept, steps):
    with RecordingStorage(memory_folder) as storage:
        sweeps.live(storage, tiny, steps, kept)
        sweeps.live(storage, tiny, [steps[-1], 4], kept)  # The next job saves what it restored.
    assert not broken(storage, tiny)
    assert not broken(storage, tiny, believed)  # TensorFlow would find it too.
    assert len(power_loss.crash_states(storage.before, storage.operations)) > 100


@pytest.mark.parametrize('at', [
    pytest.param(16, id='a stage'), pytest.param(23, id='files')])
def test_c05_nor_does_one_in_the_job_that_follows_a_kill(memory_folder, tiny, at):
    with pytest.raises(CheckpointWriteError):
        sweeps.live_in(memory_folder, tiny, [1, 2], Faults(at, 'EIO', lasting=True))
    with RecordingStorage(memory_folder) as storage:
        sweeps.live(storage, tiny, [1, 2])
    assert not broken(storage, tiny)


@pytest.mark.parametrize('left_out', [
    lambda name: True, lambda name: '/' in name, lambda name: name.endswith('manifest'),
    lambda name: name.endswith('.index'), lambda name: name == '',
    lambda name: name.startswith('checkpoint.tmp')],
    ids=['everything', 'files', 'manifest', 'index', 'directory', 'pointer'])
def test_c05_a_commit_that_does_not_sync_is_found_out(memory_folder, tiny, left_out):
    with Careless(memory_folder, left_out) as storage:
        sweeps.live(storage, tiny, [1, 2])
    assert broken(storage, tiny, believed if left_out('checkpoint.tmp') else restored)
