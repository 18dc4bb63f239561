import contextlib

import pytest
from harness.workers import in_this_process, running

from estimator_tpu_embedding.checkpoint import commit, file_names
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.cluster import preflight, process_facts
from estimator_tpu_embedding.cluster.host_errors import HostLostError
from estimator_tpu_embedding.cluster.preflight import require_memory
from estimator_tpu_embedding.errors import ConfigError, SetupError

ADDRESSES = ['10.0.0.3:8470', '10.0.0.4:8470', '10.0.0.4:8471']


@pytest.mark.parametrize('available, wheres, told', [
    ([10, 12, 12], [], []),
    ([9, 12, 12], ['worker 10.0.0.3:8470 of host 0'], ['9 bytes', '10 bytes']),
    ([10, 12, 11], ['worker 10.0.0.4:8470 of host 1, worker 10.0.0.4:8471 of host 2'],
     ['= 12 bytes', 'on one machine']),
    ([9, 11, 11], ['worker 10.0.0.3:8470 of host 0',
                   'worker 10.0.0.4:8470 of host 1, worker 10.0.0.4:8471 of host 2'], [])])
def test_every_machine_whose_memory_is_too_small_for_its_workers_together_is_named(
        available, wheres, told):
    with pytest.raises(ConfigError) if wheres else contextlib.nullcontext() as caught:
        require_memory(ADDRESSES, available, [10, 6, 6])
    if wheres:
        assert [(one.code, one.where) for one in caught.value.problems] == [
            ('E744', where) for where in wheres]
        assert all(one in str(caught.value) for one in told)


def test_a_directory_that_all_see_passes_and_keeps_no_note(tmp_path):
    with in_this_process() as address:
        preflight.require_shared([address], str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_an_error_of_the_client(tmp_path):
    with pytest.raises(SetupError, match='E742 this process.*No such file'):
        preflight.require_shared([], str(tmp_path / 'none'))


def test_a_worker_that_does_not_answer_is_named_and_no_note_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(preflight, 'SECONDS', .5)
    with pytest.raises(HostLostError, match='E707 worker 127.0.0.1:1 of host 0') as caught:
        preflight.require_shared(['127.0.0.1:1'], str(tmp_path))
    assert caught.value.hosts == (0,)
    assert list(tmp_path.iterdir()) == []


def test_the_next_job_removes_the_note_of_a_killed_one(tmp_path):
    assert process_facts.note(str(tmp_path), 'a1', 'write', 'x') == {}
    (tmp_path / '.etpe-note-a-b').touch()  # No name of a note.
    with Storage(str(tmp_path)) as storage:
        assert commit.clean(storage) == 1
    assert [path.name for path in tmp_path.iterdir()] == ['.etpe-note-a-b']


def test_a_note_is_written_once_and_never_through_a_link(tmp_path):
    target = tmp_path / 'target'
    (tmp_path / file_names.note('a')).symlink_to(target)
    assert process_facts.note(str(tmp_path), 'a', 'write', 'x')['problem'] == 'File exists'
    assert not target.exists()
    with pytest.raises(ValueError, match='letters and digits'):
        process_facts.note(str(tmp_path), '../a', 'write', 'x')
    with pytest.raises(ValueError, match='not \'run\''):
        process_facts.note(str(tmp_path), 'a', 'run')


def test_a_checkpoint_that_the_client_lacks_is_left_to_whoever_restores_it(tmp_path):
    preflight.require_same(['127.0.0.1:1'], str(tmp_path / 'model.ckpt-1'))


@pytest.mark.soak
def test_workers_that_see_another_disk_or_may_not_write_are_all_named_at_once(tmp_path):
    directory, others = tmp_path / 'shared', tmp_path / 'others'
    directory.mkdir()
    others.mkdir()
    (directory / 'model.ckpt-1.index').write_text('one')
    (others / 'model.ckpt-1.index').write_text('another')
    with running(3, before={
            1: _with_mounts(f'mount --bind {others} {directory}'),
            2: _with_mounts(f'mount --bind {directory} {directory} && '
                            f'mount -o remount,ro,bind {directory}')}) as workers:
        with pytest.raises(SetupError) as caught:
            preflight.require_shared(workers.addresses, str(directory))
        with pytest.raises(SetupError) as differs:
            preflight.require_same(workers.addresses, str(directory / 'model.ckpt-1'))
    elsewhere, unwritable = caught.value.problems
    assert (elsewhere.code, elsewhere.where) == ('E741', f'worker {workers.addresses[1]} of host 1')
    assert 'a file that it wrote there is not here' in str(elsewhere)
    assert (unwritable.code, unwritable.where) == (
        'E742', f'worker {workers.addresses[2]} of host 2')
    assert 'Read-only file system' in str(unwritable)
    only, = differs.value.problems
    assert (only.code, only.where) == ('E741', elsewhere.where)
    assert 'another checkpoint of that name' in str(only)
    assert [path.name for path in directory.iterdir()] == ['model.ckpt-1.index']
    assert [path.name for path in others.iterdir()] == ['model.ckpt-1.index']


def _with_mounts(command):
    """The beginning of a command line of a process that sees other mounts than this one."""
    return ['unshare', '-rm', 'setpriv', '--pdeathsig', 'KILL', 'sh', '-c',
            f'{command} && exec "$@"', 'sh']
