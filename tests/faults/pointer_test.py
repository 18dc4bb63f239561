"""C14 to C17, C24, C31: edited files lead neither out of model_dir nor back to step 0."""

import json
import os
import pathlib
import re

import pytest
from harness import sweeps
from harness.checkpoints import commit, signed
from harness.faults import Faults, FaultyStorage

from estimator_tpu_embedding.checkpoint import manifest
from estimator_tpu_embedding.checkpoint.commit import Retention, clean
from estimator_tpu_embedding.checkpoint.model_dir import claimed, continue_from, saved_in
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import CheckpointError, CorruptCheckpointError

pytestmark = pytest.mark.no_rerun


@pytest.fixture
def folders(memory_folder, tiny):
    """A directory with the checkpoints of steps 1 and 2, and one of another job with 2 and 3."""
    paths = []
    for name, steps in (('mine', [1, 2]), ('other', [2, 3])):
        path = pathlib.Path(memory_folder, name)
        path.mkdir()
        sweeps.live_in(path, tiny, steps)
        paths.append(path)
    return paths


def contents(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize('junk', [
    None, b'', b'\0' * 100, b'\xff\xfe', b'model_checkpoint_path: ', b'[' * 100_000,
    b'model_checkpoint_path: "model.ckpt-1"\n', b'model_checkpoint_path: "model.ckpt-2',
    b'model_checkpoint_path: "model.ckpt-999"',
    b'model_checkpoint_path: "model.ckpt-2\\000"',
    b'model_checkpoint_path: "model.ckpt-1"\nmodel_checkpoint_path: "model.ckpt-1"'])
def test_c14_the_newest_checkpoint_is_found_whatever_the_pointer_says(folders, tiny, junk):
    mine, _ = folders
    pointer = mine / 'checkpoint'
    pointer.unlink()
    if junk is not None:
        pointer.write_bytes(junk)
    found = recover(str(mine))
    assert found.step == 2 and tiny.is_at(found.prefix, 2)
    continue_from(str(mine), found)
    assert pointer.read_text().startswith('model_checkpoint_path: "model.ckpt-2"\n')


@pytest.mark.parametrize('absolute', [True, False])
def test_c15_a_pointer_to_another_directory_is_refused_unless_it_is_meant(folders, tiny,
                                                                          absolute):
    mine, other = folders
    where = str(other) if absolute else '../other'
    (mine / 'checkpoint').write_text(f'model_checkpoint_path: "{where}/model.ckpt-3"\n')
    with pytest.raises(CorruptCheckpointError, match='E619 model_dir') as caught:
        recover(str(mine))
    assert str(other.resolve() / 'model.ckpt-3') in str(caught.value)
    assert 'follow-pointer' in str(caught.value)
    meant = CheckpointOptions(follow_pointer=True)
    with pytest.raises(CorruptCheckpointError, match='E619 .* no checkpoint of its own; got model'):
        recover(str(mine), meant)
    for path in mine.glob('model.ckpt-*'):
        path.unlink()
    found = recover(str(mine), meant)
    assert found.step == 3 and tiny.is_at(found.prefix, 3)


def test_c16_rotation_deletes_nothing_that_is_not_ours(folders, tiny):
    mine, other = folders
    before = contents(other)
    (mine / 'precious').write_bytes(b'precious')
    (mine / 'model.ckpt-0.index').write_bytes(b'of somebody who writes no manifests')
    names = ['../other/model.ckpt-2', str(other / 'model.ckpt-3'), 'precious', '.', '',
             'model.ckpt-0', 'model.ckpt-1', 'model.ckpt-1/../../other/model.ckpt-2']
    (mine / 'checkpoint').write_text('model_checkpoint_path: "model.ckpt-2"\n' + ''.join(
        f'all_model_checkpoint_paths: "{name}"\n' for name in names))
    with FaultyStorage(str(mine), Faults()) as storage:
        commit(storage, 4, tiny.write(4), tiny.manifest(4), retention=Retention(1),
               saved=saved_in(str(mine), 'model.ckpt'))
    assert contents(other) == before
    left = contents(mine)
    assert left['precious'] == b'precious' and 'model.ckpt-0.index' in left
    assert sweeps.steps_in(mine) == [2, 4]  # The pointer did not list step 2.


def test_c16_a_manifest_lists_only_files_of_its_own_checkpoint(folders, tiny):
    mine, other = folders
    text = (mine / 'model.ckpt-1.tables.json').read_text()
    fields = json.loads(text.replace('model.ckpt-1.meta', '../other/model.ckpt-2.meta'))
    (mine / 'model.ckpt-1.tables.json').unlink()
    (mine / 'model.ckpt-1.tables.json.partial').write_text(signed(fields))
    before = contents(other)
    with FaultyStorage(str(mine), Faults()) as storage:
        clean(storage)
    assert contents(other) == before


def link(path, target):
    """Puts a link to a victim where something else is to be, and returns what is in that."""
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(target)
    return contents(target) if target.is_dir() else target.read_bytes()


@pytest.mark.parametrize('name', [
    'model.ckpt-3.tables.json', 'model.ckpt-3.tables.json.partial', 'model.ckpt-3.index',
    'model.ckpt-3.data-00000-of-00002'])
def test_c17_a_link_in_the_place_of_a_file_is_not_followed(folders, tiny, name):
    mine, other = folders
    target = other / 'model.ckpt-2.index'
    before = link(mine / name, target)
    with FaultyStorage(str(mine), Faults()) as storage:
        with pytest.raises(CheckpointError, match='E623|E621'):
            commit(storage, 3, tiny.write(3), tiny.manifest(3))
    assert (mine / name).is_symlink()
    assert not list(mine.glob('.ete-stage-*'))
    assert recover(str(mine)).step == 2
    assert target.read_bytes() == before


@pytest.mark.parametrize('operation', ['write', 'create', 'sync', 'rename', 'rename .*data-00001'])
def test_c17_a_stage_that_becomes_a_link_ends_the_commit(folders, tiny, operation):
    mine, other = folders
    before = contents(other)

    def swap(now):
        if re.match(operation, now) and not (mine / 'aside').exists():
            stage, = mine.glob('.ete-stage-*')
            stage.rename(mine / 'aside')
            stage.symlink_to(other)

    faults = Faults(before=swap)
    write = tiny.write(3) if operation != 'write' else lambda prefix: faults.meet('write')
    with FaultyStorage(str(mine), faults) as storage:
        with pytest.raises(CheckpointError):
            commit(storage, 3, write, tiny.manifest(3))
    assert contents(other) == before
    assert recover(str(mine)).step == 2


def test_c17_stages_that_are_links_are_not_followed_when_a_job_cleans_up(folders):
    mine, other = folders
    before = link(mine / '.ete-stage-7-x', other)
    with pytest.raises(CheckpointError, match='E623'):
        with claimed(str(mine)):
            pass
    assert contents(other) == before


def test_c17_model_dir_itself_may_be_a_link(folders, tiny):
    mine, other = folders
    (other / 'link').symlink_to(mine)
    sweeps.live_in(other / 'link', tiny, [3])
    assert sweeps.check(str(other / 'link'), tiny, 3) == 3


def test_c24_an_edited_checkpoint_is_found_by_an_expected_digest_only(folders, tiny):
    mine, other = folders
    expected = manifest.digest(str(mine / 'model.ckpt-2'))
    pinned = CheckpointOptions(expected_digest=expected)
    assert recover(str(mine), pinned).step == 2
    (other / 'forged').mkdir()
    with FaultyStorage(str(other / 'forged'), Faults()) as storage:
        commit(storage, 2, tiny.write(3), tiny.manifest(2))
    for path in (other / 'forged').glob('model.ckpt-2.*'):
        path.rename(mine / path.name)
    assert recover(str(mine)).step == 2  # All of it is right, but the rows are others.
    with pytest.raises(CorruptCheckpointError, match=f'E625 .*{expected}'):
        recover(str(mine), pinned)  # And not the one before, which nobody asked for.


@pytest.mark.parametrize('path', ['gs://bucket/model', 's3://bucket', 'hdfs://host/model'])
def test_c31_storage_that_is_no_file_system_is_refused(path):
    with pytest.raises(CheckpointError, match='E624 model_dir') as caught:
        with claimed(path):
            pass
    assert path in str(caught.value)
    assert not os.path.exists(path.split('/')[0])


class Copying(FaultyStorage):
    """Renames by copying and deleting, as object stores do."""

    def rename(self, source, target):
        content = pathlib.Path(self.path(source)).read_bytes()
        copy = pathlib.Path(self.path(target))
        self._faults.meet(f'copy {source} {target}', lambda: copy.write_bytes(
            content[:len(content) // 2]))
        self._faults.meet(f'delete {source}', lambda: copy.write_bytes(content))
        super().rename(source, target)


def test_c31_even_there_nothing_that_was_committed_is_lost(memory_folder, tiny):
    at, ended = 0, False
    while not ended:
        at += 1
        with sweeps.folder(memory_folder) as directory:
            with Copying(directory, Faults(at, 'EIO', lasting=True)) as storage:
                try:
                    sweeps.live(storage, tiny, [1, 2, 3])
                    ended = True
                except CheckpointError:
                    pass
            returned = storage.returned
            sweeps.check(directory, tiny, returned[-1] if returned else None,
                         len(returned) + 1, pointed=False)
    assert at > 100
