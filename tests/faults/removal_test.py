"""A checkpoint that replaces another one of its name, in jobs that fail at any operation."""

import contextlib
import os
import pathlib

import pytest
from harness import power_loss
from harness.faults import Faults, FaultyStorage
from harness.power_loss import RecordingStorage

from estimator_tpu_embedding.checkpoint import commit
from estimator_tpu_embedding.checkpoint.model_dir import claimed
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import CheckpointWriteError, CorruptCheckpointError

pytestmark = pytest.mark.no_rerun
STEP, OLD, NEW = 2, 2, 3
"""The step of both, and the steps of `Tiny` whose content they have."""
NAME = f'model.ckpt-{STEP}'
KEPT = ('.ete-lock', 'checkpoint')


@pytest.fixture
def folder(tmp_path):
    """A function that makes a directory with the old one."""
    def made(number, tiny):
        directory = tmp_path / str(number)
        directory.mkdir()
        with FaultyStorage(str(directory), Faults()) as storage:
            commit_as(storage, tiny, OLD)
        return directory
    return made


def commit_as(storage, tiny, content):
    """Commits the step with some content, whatever is there."""
    def write(prefix):
        for suffix, one in tiny.files(content).items():
            storage.write(prefix + suffix, one)

    commit.publish(storage, commit.stage(storage, STEP, write), tiny.manifest(STEP))


def content_in(directory, tiny):
    """Which of both the files are, all of them."""
    found = {path.name.removeprefix(NAME): path.read_bytes()
             for path in pathlib.Path(directory).glob(f'{NAME}.*')
             if not path.name.startswith(f'{NAME}.tables.json')}
    return [content for content in (OLD, NEW) if found == tiny.files(content)]


def require_no_mixture(directory, tiny):
    """No index is beside files of the other one: readers who know no manifests would take them."""
    found = [path for path in directory.glob(f'{NAME}.*') if '.tables.json' not in path.name]
    contents = {content for path in found for content in (OLD, NEW)
                if tiny.files(content).get(path.name.removeprefix(NAME)) == path.read_bytes()
                and path.suffix != '.meta'}
    assert len(contents) < 2 or directory / f'{NAME}.index' not in found, os.listdir(directory)


def after_next_job(directory, tiny):
    """Which of both there is when the next job has begun, which leaves nothing else."""
    with claimed(str(directory)):
        pass
    found = recover(str(directory))
    assert found.step == STEP and found.manifest is not None
    expected = {f'{NAME}{suffix}' for suffix in (*tiny.files(OLD), '.tables.json')}
    assert set(os.listdir(directory)) - set(KEPT) == expected
    content, = content_in(directory, tiny)
    return content


def operations(folder, tiny):
    """The operations of a replacement that nothing disturbs, in words."""
    faults = Faults()
    with FaultyStorage(str(folder('all', tiny)), faults) as storage:
        commit_as(storage, tiny, NEW)
    return faults.log


def commit_failing(directory, tiny, at):
    """Replaces the checkpoint by `NEW`; every operation from number `at` on fails."""
    with FaultyStorage(str(directory), Faults(at, 'EIO', lasting=True)) as storage, (
            contextlib.suppress(CheckpointWriteError)):
        commit_as(storage, tiny, NEW)
    require_no_mixture(directory, tiny)


def test_at_every_operation_the_next_job_finds_the_old_one_or_the_new_one(folder, tiny):
    found = []
    for at, operation in enumerate(operations(folder, tiny), 1):
        directory = folder(at, tiny)
        commit_failing(directory, tiny, at)
        try:
            assert recover(str(directory)) is None or len(content_in(directory, tiny)) == 1
        except CorruptCheckpointError as error:  # "checkpoint" names what is not there.
            assert 'A killed job was replacing it' in str(error)
        found.append((operation, after_next_job(directory, tiny)))
    first = next(at for at, (_, content) in enumerate(found) if content == NEW)
    assert [content for _, content in found] == [OLD] * first + [NEW] * (len(found) - first)
    assert found[first - 1][0].startswith('rename .ete-stage') and len(found) - first > 15


def test_no_loss_of_power_loses_both(tmp_path, folder, tiny):
    directory = folder('power', tiny)
    with RecordingStorage(str(directory)) as storage:
        storage.done(STEP)
        commit_as(storage, tiny, NEW)

    def restored(directory):
        with claimed(directory):
            found = recover(directory)
        return None if found is None else (found.prefix, found.step)

    wrong = power_loss.broken_promises(storage, restored, lambda prefix, step: content_in(
        os.path.dirname(prefix), tiny))
    assert next(wrong, None) is None
    assert len(power_loss.crash_states(storage.before, storage.operations)) > 30


def test_an_old_one_without_a_manifest_is_replaced_too(folder, tiny):
    directory = folder('bare', tiny)
    (directory / f'{NAME}.tables.json').unlink()
    for at in range(1, len(operations(folder, tiny)), 4):
        commit_failing(directory, tiny, at)
    assert after_next_job(directory, tiny) == NEW


def test_a_job_that_goes_on_after_an_error_replaces_it_at_the_next_save(folder, tiny):
    directory = folder('again', tiny)
    marked = f'rename {NAME}.tables.json {NAME}.tables.json.partial'
    faults = Faults(operations(folder, tiny).index(marked) + 1, 'EIO')
    with FaultyStorage(str(directory), faults) as storage:
        with pytest.raises(CheckpointWriteError):
            commit_as(storage, tiny, NEW)
        assert f'.ete-replaces-{NAME}' in os.listdir(directory)
        commit_as(storage, tiny, OLD)
    assert after_next_job(directory, tiny) == OLD
