"""C27: clocks that jump neither reorder checkpoints nor delete any."""

import os

import pytest
from harness import sweeps
from harness.checkpoints import commit, describe
from harness.faults import Faults, FaultyStorage

from estimator_tpu_embedding.checkpoint.commit import Retention
from estimator_tpu_embedding.checkpoint.recover import recover

NOW, HOUR = 1_800_000_000., 3600.


@pytest.mark.parametrize('created', [
    [NOW, NOW + 60, NOW - HOUR, NOW - HOUR + 60], [NOW, NOW + 60, NOW + 8766 * HOUR, NOW + 90],
    [NOW] * 4], ids=['back an hour', 'a year ahead and back', 'it stands'])
def test_c27_steps_alone_say_what_is_newer(memory_folder, tiny, created):
    saved = []
    with FaultyStorage(memory_folder, Faults()) as storage:
        for step, now in enumerate(created, 1):
            saved = commit(storage, step, tiny.write(step), describe(step, created=now),
                           saved=saved, retention=Retention(2))
            for name in storage.names():
                os.utime(storage.path(name), (now, now))
    assert sweeps.check(memory_folder, tiny, 4) == 4
    assert sweeps.steps_in(memory_folder) == [3, 4]
    assert recover(memory_folder).manifest.created == created[-1]
