"""M04 to M08: what a migration does with bad sources, destinations and disks."""

import contextlib
import os
import pathlib
import re

import numpy as np
import pytest
from harness import migration_job as job
from harness.checkpoints import flip
from harness.faults import Faults
from harness.parts import soak_except

from estimator_tpu_embedding.checkpoint import commit, stored_rows
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.errors import (
    CheckpointError,
    CheckpointWriteError,
    NonFiniteCheckpointError,
)
from estimator_tpu_embedding.migration import migrate_checkpoint

pytestmark = pytest.mark.no_rerun
DATA, INDEX, MANIFEST = '.data-00000-of-00001', '.index', '.tables.json'


@pytest.fixture
def source(tmp_path):
    """The prefix of a checkpoint of TF1."""
    return job.make(tmp_path / 'source')


@pytest.fixture
def map(tmp_path):
    """The path of the map that it needs."""
    return job.map_in(tmp_path)


def nothing_in(directory):
    """Whether a failed migration has left nothing but its lock."""
    return not directory.exists() or os.listdir(directory) == ['.ete-lock']


DAMAGES = {
    'a flip in the rows': (lambda prefix: flip(prefix + DATA, 40), 'E613', '"t"'),
    'a flip in the slot': (lambda prefix: flip(prefix + DATA, -3), 'E613', '"t/Adagrad"'),
    'a flip in the index': (lambda prefix: flip(prefix + INDEX, 20), 'E613', 'index'),
    'an index cut short': (lambda prefix: os.truncate(prefix + INDEX, 60), 'E61[38]', 'index'),
    'rows cut short': (lambda prefix: os.truncate(prefix + DATA, 100), 'E61[38]', 'data'),
    'no rows': (lambda prefix: os.unlink(prefix + DATA), 'E61[38]', 'data'),
    'no index': (lambda prefix: os.unlink(prefix + INDEX), 'E61[38]', 'index'),
    'a flip in the manifest': (lambda prefix: flip(prefix + MANIFEST, 60), 'E611', 'manifest'),
    'the manifest of another step': (lambda prefix: os.replace(
        job.make(pathlib.Path(prefix).parent / 'other', step=8) + MANIFEST, prefix + MANIFEST),
        'E61[148]', 'manifest'),
    'no manifest, and a flip in the rows': (lambda prefix: (
        os.unlink(prefix + MANIFEST), flip(prefix + DATA, 40)), 'E61[38]', '"t"')}


@pytest.mark.parametrize('damage', DAMAGES)
def test_m04_a_damaged_source_is_refused_and_nothing_is_left(tmp_path, source, map, damage):
    act, code, fact = DAMAGES[damage]
    act(source)
    status, _, error = job.migrate(source, tmp_path / 'new', map, '--assume', 'mod:3')
    assert status == 2 and re.search(code, error) and fact in error, error
    assert nothing_in(tmp_path / 'new')


@pytest.mark.parametrize('damage', soak_except(list(DAMAGES)[:4], 0))
def test_m04_of_a_directory_an_older_one_is_taken_and_that_is_said(tmp_path, map, damage):
    job.make(tmp_path / 'source', step=6)
    newer = job.make(tmp_path / 'source', step=7)
    DAMAGES[damage][0](newer)
    status, out, error = job.migrate(tmp_path / 'source', tmp_path / 'new', map)
    assert status == 0, error
    assert 'model.ckpt-7' in out and 'not whole' in out
    assert job.content(tmp_path / 'new/ckpt-6') == job.NEW


def test_m05_what_is_only_staged_or_half_published_is_no_source(tmp_path, source, map):
    stage = tmp_path / 'source/.ete-stage-7-01234567'
    stage.mkdir()
    for path in list((tmp_path / 'source').glob('model.ckpt-7.*')):
        path.rename(stage / path.name)
    assert job.migrate(tmp_path / 'source', tmp_path / 'new', map)[0] == 2
    for path in list(stage.iterdir()):
        path.rename(tmp_path / 'source' / path.name)
    os.rename(source + MANIFEST, f'{source}{MANIFEST}.partial')
    os.unlink(tmp_path / 'source/checkpoint')
    status, _, error = job.migrate(tmp_path / 'source', tmp_path / 'new', map)
    assert status == 2 and 'E645' in error
    assert nothing_in(tmp_path / 'new')


@pytest.fixture
def rotating(source, monkeypatch):
    """Lets a job delete the source, and publish a newer one, as soon as it is about to be read."""
    write = migrate_checkpoint.write

    def write_late(plan, prefix):
        if plan.step == job.STEP:
            folder = os.path.dirname(source)
            job.make(folder, step=job.STEP + 1)
            with Storage(folder) as storage:
                for name in commit.mark(storage, [os.path.basename(source)]):
                    commit.delete_marked(storage, name)
        write(plan, prefix)

    monkeypatch.setattr(migrate_checkpoint, 'write', write_late)


def test_m05_a_source_that_a_job_deletes_is_not_called_damaged(tmp_path, source, map, rotating):
    status, _, error = job.migrate(source, tmp_path / 'new', map)
    assert status == 2 and 'E628' in error
    assert nothing_in(tmp_path / 'new')


def test_m05_nor_is_one_that_a_job_begins_to_delete(tmp_path, source, map):
    def mark(phase):
        if phase == 'written':
            with Storage(os.path.dirname(source)) as storage:
                commit.mark(storage, [os.path.basename(source)])

    with pytest.raises(CheckpointError, match='E628'), job.phases(mark):
        migrate_checkpoint.carry_out(job.planned(source, map), str(tmp_path / 'new'))
    assert nothing_in(tmp_path / 'new')


def test_m05_of_a_directory_the_newer_one_is_taken_then(tmp_path, source, map, rotating):
    status, _, error = job.migrate(tmp_path / 'source', tmp_path / 'new', map)
    assert status == 0, error
    assert job.content(tmp_path / 'new/ckpt-8') == job.NEW


def changed(source, content):
    """Puts other bytes into the rows of a source, as a job that writes in place would."""
    with open(source + DATA, 'r+b') as file:
        file.write(content)


@pytest.mark.parametrize('act, fact', [
    (lambda source: changed(source, bytes(30)), 'id 0'),
    (lambda source: os.utime(source + DATA, (1, 1)), 'other files now'),
    (lambda source: job.make(os.path.dirname(source), rows=12), '')],
    ids=['rows', 'times', 'another one'])
def test_m05_a_source_that_changes_is_noticed(tmp_path, source, map, act, fact):
    plan = job.planned(source, map)
    with pytest.raises(CheckpointWriteError, match='E658') as caught, job.phases(
            lambda phase: act(source) if phase == 'written' else None):
        migrate_checkpoint.carry_out(plan, str(tmp_path / 'new'))
    assert fact in str(caught.value)
    assert nothing_in(tmp_path / 'new')


@pytest.mark.parametrize('dry', [False, True])
@pytest.mark.parametrize('make, fact', [
    (lambda new: os.mkfifo(new), 'something else'),
    (lambda new: new.symlink_to('nowhere'), 'something else'),
    (lambda new: new.symlink_to('source'), 'the directory of the source'),
    (lambda new: job.carried_out(str(new.parent / 'source/model.ckpt-7'),
                                 str(new.parent / 'map'), new), 'checkpoint ckpt-7'),
    (lambda new: job.make(new, step=3), 'model.ckpt-3')])
def test_m06_a_destination_in_use_is_refused_and_stays_as_it_is(
        tmp_path, source, map, make, fact, dry):
    make(tmp_path / 'new')
    before = job.state(tmp_path)
    status, _, error = job.migrate(source, tmp_path / 'new', map, *['--dry-run'] * dry)
    assert status == 2 and 'E656' in error and fact in error
    assert job.state(tmp_path) == before


def test_m06_one_that_was_published_between_the_look_and_the_lock_is_not_overwritten(
        tmp_path, source, map, monkeypatch):
    older = job.make(tmp_path / 'older', job.OLD)
    claimed = migrate_checkpoint.model_dir.claimed

    @contextlib.contextmanager
    def late(directory):
        monkeypatch.setattr(migrate_checkpoint.model_dir, 'claimed', claimed)
        job.carried_out(older, map, directory)
        with claimed(directory) as count:
            yield count

    monkeypatch.setattr(migrate_checkpoint.model_dir, 'claimed', late)
    with pytest.raises(CheckpointError, match='E656'):
        job.carried_out(source, map, tmp_path / 'new')
    assert job.content(tmp_path / 'new' / job.NAME) == job.OLD


def test_overwrite_replaces_the_checkpoint_of_that_name_and_no_other(tmp_path, source, map):
    older = job.make(tmp_path / 'older', job.OLD)
    job.carried_out(older, map, tmp_path / 'new')
    assert job.migrate(source, tmp_path / 'new', map, '--overwrite')[0] == 0
    assert job.content(tmp_path / 'new' / job.NAME) == job.NEW
    assert job.found_in(tmp_path / 'new') == job.NEW
    job.make(tmp_path / 'new', step=3)
    status, _, error = job.migrate(source, tmp_path / 'new', map, '--overwrite')
    assert status == 2 and 'E656' in error and 'model.ckpt-3' in error


def test_m07_the_room_that_is_needed_is_compared_before_a_byte_is_written(
        tmp_path, source, map, monkeypatch):
    plan, statvfs = job.planned(source, map), os.statvfs
    room = statvfs(tmp_path)
    needed = migrate_checkpoint.size_of_files(plan)

    def with_free(bytes):
        monkeypatch.setattr(migrate_checkpoint.os, 'statvfs', lambda path: os.statvfs_result(
            (1, 1, *room[2:4], bytes, *room[5:])))

    with_free(needed - 1)
    with pytest.raises(CheckpointWriteError, match='E657') as caught:
        migrate_checkpoint.carry_out(plan, str(tmp_path / 'new'))
    assert f'{needed:,} bytes must be free; got {needed - 1:,}' in str(caught.value)
    assert nothing_in(tmp_path / 'new')
    with_free(needed)
    done = migrate_checkpoint.carry_out(plan, str(tmp_path / 'new'))
    written = sum(path.stat().st_size for path in (tmp_path / 'new').iterdir())
    assert os.path.basename(done.prefix) == job.NAME and written <= needed


@pytest.mark.parametrize('kind', ['ENOSPC', 'EIO'])
def test_m07_an_error_of_the_disk_at_any_operation_leaves_no_stage(
        tmp_path, source, map, kind):
    codes, at, is_done = set(), 0, False
    while not is_done:
        at += 1
        new = tmp_path / str(at)
        with pytest.MonkeyPatch.context() as patch:
            for owner, name, value in job.replacements(Faults(at, kind)):
                patch.setattr(owner, name, value)
            try:
                job.carried_out(source, map, new)
                is_done = at > 25
            except CheckpointWriteError as error:
                codes.add(error.code)
                assert os.strerror(28 if kind == 'ENOSPC' else 5) in str(error)
        if job.found_in(new) is None:
            assert not [name for name in os.listdir(new) if name.startswith('.ete-stage')]
    assert codes == {'E621'} and at > 25


def test_m08_rows_that_are_not_finite_are_refused_with_a_remedy(tmp_path, map):
    numbers = job.values()
    numbers[[3, 5], 1] = np.nan, np.inf
    prefix = job.make(tmp_path / 'made')
    plan = job.planned(prefix, map)
    partition = plan.contents.variables[0].order
    with open(prefix + DATA, 'r+b') as file:
        file.seek(Bundle.open(prefix).tensors['t'].pieces[0].offset)
        file.write(numbers[partition.ids_of_stored_rows(0, job.ROWS)].tobytes())
    with pytest.raises(NonFiniteCheckpointError) as caught:
        migrate_checkpoint.carry_out(plan, str(tmp_path / 'new'))
    text = str(caught.value)
    for fact in ('E620', job.KEYS['t'], '2 rows with NaN or infinity', 'The source has them too',
                 'Name an older checkpoint'):
        assert fact in text
    assert nothing_in(tmp_path / 'new')


@pytest.mark.parametrize('strategy', ['div', 'mod'])
@pytest.mark.parametrize('hosts', soak_except([1, 2, 3, 5, 16], 2, 4))
def test_rows_go_there_and_back_byte_for_byte_however_few_fit_into_a_turn(
        tmp_path, map, monkeypatch, strategy, hosts):
    prefix = job.make(tmp_path / 'source', strategy=strategy, hosts=hosts)
    monkeypatch.setattr(stored_rows, '_CHUNK', 24)  # Three rows.
    done = job.carried_out(prefix, map, tmp_path / 'there')
    assert job.content(done.prefix) == job.NEW and done.rows == 2 * job.ROWS + 1
    status, _, error = job.run('migrate', 'checkpoint', done.prefix, tmp_path / 'back', '--to',
                               'tf1', '--order', f'mod:{hosts}' if strategy == 'mod' else 'div')
    assert status == 0, error
    back = tmp_path / 'back/model.ckpt-7'
    assert read_manifest(str(back)).tables['t'].strategy == strategy
    for name in ('t', 't/Adagrad', 'global_step'):
        one, other = (Bundle.open(str(path)) for path in (prefix, back))
        rows = one.tensors[name].rows
        assert (one.read_bytes(name, 0, rows) == other.read_bytes(name, 0, rows)).all()


def test_a_row_that_was_written_wrongly_is_found_by_its_id(tmp_path, source, map):
    def damage(phase):
        if phase == 'written':
            stage, = (tmp_path / 'new').glob('.ete-stage-*')
            prefix = str(stage / job.NAME)
            at = Bundle.open(prefix).tensors[job.KEYS['t']].pieces[0].offset
            flip(prefix + DATA, at + 9 * 4 * job.WIDTH)

    with pytest.raises(CheckpointWriteError, match='E658') as caught, job.phases(damage):
        migrate_checkpoint.carry_out(job.planned(source, map), str(tmp_path / 'new'))
    assert 'id 9' in str(caught.value) and job.KEYS['t'] in str(caught.value)
    assert nothing_in(tmp_path / 'new')


@pytest.mark.parametrize('is_damaged', [False, True])
def test_strings_go_along_byte_for_byte_and_are_compared_too(tmp_path, is_damaged):
    (tmp_path / 'map').write_text('table t -> t\ntext -> text\n')
    source = job.make(tmp_path / 'source', text=b'x' * 3_000_000)
    key = 'text/.ATTRIBUTES/VARIABLE_VALUE'

    def damage(phase):
        if phase == 'written' and is_damaged:
            stage, = (tmp_path / 'new').glob('.ete-stage-*')
            prefix = str(stage / job.NAME)
            flip(prefix + DATA, Bundle.open(prefix).tensors[key].pieces[0].offset + 2_000_000)

    with (pytest.raises(CheckpointWriteError, match=f'E658 "{key}"') if is_damaged
          else contextlib.nullcontext()), job.phases(damage):
        job.carried_out(source, tmp_path / 'map', tmp_path / 'new')
        assert Bundle.open(str(tmp_path / 'new' / job.NAME)).read_text(key) == b'x' * 3_000_000


@pytest.mark.parametrize('act', [lambda source: None, lambda source: os.unlink(source + DATA)],
                         ids=['alone', 'before that of the copy'])
def test_the_error_of_the_verification_is_raised(tmp_path, source, map, act):
    def verify():
        act(source)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        migrate_checkpoint.carry_out(job.planned(source, map), str(tmp_path / 'new'), verify=verify)
    assert nothing_in(tmp_path / 'new')
