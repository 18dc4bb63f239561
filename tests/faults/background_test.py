"""C29: what fails beside the training is raised once, by the next save or in the end."""

import contextlib
import os
import types

import pytest
from harness import sweeps
from harness.faults import Faults, FaultyStorage

from estimator_tpu_embedding.checkpoint import pointer, saver
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import CheckpointWriteError
from estimator_tpu_embedding.runner.checkpoint_hooks import Background


class Writes:
    """In place of a `tf.train.Saver`: writes the files of a step."""

    saver_def = types.SimpleNamespace(max_to_keep=2, keep_checkpoint_every_n_hours=0)

    def __init__(self, tiny):
        self._tiny = tiny

    def save(self, session, path, global_step, write_meta_graph, write_state):
        assert not write_state  # The pointer is for `commit` to write.
        self._tiny.write(global_step)(f'{path}-{global_step}')


@pytest.fixture
def job(memory_folder, tiny, monkeypatch):
    """`job(at, ...)`: (save(step), saver, background, faults); operation `at` fails."""
    stack = contextlib.ExitStack()

    def make(at=None, kind='EIO', lasting=False, **options):
        faults = Faults(at, kind, lasting)
        monkeypatch.setattr(saver, 'Storage', lambda path: FaultyStorage(path, faults))
        background = stack.enter_context(Background())
        committing = saver.CommittingSaver(
            Writes(tiny), {}, b'', background=background, options=CheckpointOptions(**options))
        return (lambda step: committing.save(None, f'{memory_folder}/model.ckpt', step),
                committing, background, faults)

    with stack:
        yield make


def operations(job, last):
    """What saves up to a step do while nothing fails, one after the other."""
    save, _, background, faults = job()
    for step in range(1, last + 1):
        save(step)
        background.wait()
    return faults.log


def empty(directory):
    """Deletes all checkpoints."""
    for name in os.listdir(directory):
        os.unlink(f'{directory}/{name}')


def test_c29_the_next_save_raises_what_the_one_before_met_and_only_once(job, memory_folder,
                                                                        tiny):
    log = operations(job, 2)
    begin = next(at for at, operation in enumerate(log) if '.ete-stage-2' in operation)
    beside = [at for at in range(begin + 1, len(log))
              if log[at].split()[0] in ('create', 'sync', 'rename')]
    assert len(beside) > 12
    for at in beside:
        empty(memory_folder)
        save, committing, background, _ = job(at + 1)
        save(1)
        background.wait()
        save(2)  # It returns though it will fail.
        with pytest.raises(CheckpointWriteError, match='E621 step 2') as caught:
            save(3)
        assert 'Input/output error' in str(caught.value)
        found = sweeps.check(memory_folder, tiny, 1, 2)
        named = pointer.read(memory_folder)
        assert found == 2 or named == ('model.ckpt-1', ('model.ckpt-1',))
        assert not [name for name in os.listdir(memory_folder) if name.startswith('.ete')]
        background.wait()  # Not raised again.
        save(4)
        committing.finish()
        assert sweeps.check(memory_folder, tiny, 4) == 4


def test_c29_the_end_raises_what_the_last_save_met(job, memory_folder, tiny):
    first = len(operations(job, 1))
    empty(memory_folder)
    save, committing, _, _ = job(first + 8)
    save(1)
    save(2)
    with pytest.raises(CheckpointWriteError, match='E621 step 2'):
        committing.finish()
    assert sweeps.check(memory_folder, tiny, 1) == 1


def test_c06_saves_may_fail_as_often_in_a_row_as_the_options_say(
        job, memory_folder, tiny, caplog):
    save, committing, background, faults = job(1, 'ENOSPC', max_save_failures=2)
    for step in (1, 3):  # Each second save fails when it makes its stage.
        save(step)
        assert f'E621 step {step}' in caplog.text
        assert [found.step for found in [recover(memory_folder)] if found] == [2] * (step == 3)
        save(step + 1)
        background.wait()
        faults.log.clear()
    assert caplog.text.count('Training goes on; 1 saves') == 2
    committing.finish()
    assert sweeps.check(memory_folder, tiny, 4) == 4


def test_c06_the_last_save_must_succeed_however_often_saves_may_fail(job, memory_folder):
    save, committing, _, _ = job(1, 'ENOSPC', max_save_failures=5)
    save(1)
    with pytest.raises(CheckpointWriteError, match='E621 step 1'):
        committing.finish()
    assert recover(memory_folder) is None
