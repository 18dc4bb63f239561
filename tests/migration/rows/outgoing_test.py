"""Exports: rows in the order of ids, bit for bit, and nothing half-made is ever taken for whole."""

import errno
import hashlib
import json
import os
import pathlib
import signal

import numpy as np
import pytest
from harness import forged
from harness.faults import Faults, FaultyStorage
from harness.forged_job import VALUES, save
from harness.kill_job import live

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.files import Storage
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.errors import CheckpointError, ConfigError
from estimator_tpu_embedding.migration.rows import exported, listing, outgoing, writers
from estimator_tpu_embedding.migration.rows.listing import CheckpointOfRows
from estimator_tpu_embedding.migration.rows.outgoing import Chosen, Export
from estimator_tpu_embedding.migration.rows.writers import Described

FROM = CheckpointOfRows(name='model.ckpt-7', step=7, manifest_sha256=None)


def plan(prefix, strategy='div', hosts=1, format='npy', shard_bytes=60):
    """An export of the table and its slot; four rows of twelve bytes have room in a shard."""
    partition = Partition(strategy=strategy, vocabulary_size=len(VALUES), num_hosts=hosts)
    return Export(Bundle.open(prefix), [Chosen('scope/t', [('Adagrad', 'scope/t/Adagrad')],
                                               partition)], format, shard_bytes)


def rows_of(directory, which):
    """All rows of the shards of a directory, in the order of their names."""
    return np.concatenate([np.load(path) for path in sorted(directory.glob(f'*.{which}-*.npy'))])


@pytest.mark.parametrize('strategy', ['div', 'mod'])
@pytest.mark.parametrize('hosts', [1, 2, 3, 5])
def test_rows_come_in_the_order_of_ids_however_they_are_stored(tmp_path, strategy, hosts):
    prefix = save(tmp_path / 'm', strategy=strategy, hosts=hosts)
    index = plan(prefix, strategy, hosts).carry_out(str(tmp_path / 'out'), FROM)
    np.testing.assert_array_equal(rows_of(tmp_path / 'out', 'rows'), VALUES)
    np.testing.assert_array_equal(rows_of(tmp_path / 'out', 'Adagrad'), VALUES * 2)
    assert [(shard.first_id, shard.rows) for shard in index.tables[0].shards] == [
        (0, 5), (5, 5), (10, 1)]


def test_rows_json_says_what_the_files_are(tmp_path):
    plan(save(tmp_path / 'm')).carry_out(str(tmp_path / 'out'), FROM)
    said = json.loads((tmp_path / 'out' / 'rows.json').read_text())
    assert said['kind'] == 'npy' and said['checkpoint']['step'] == 7
    table, = said['tables']
    assert (table['name'], table['rows'], table['width']) == ('scope/t', 11, 3)
    assert table['tensors'][1] == {
        'name': 'scope/t/Adagrad', 'slot': 'Adagrad', 'dtype': 'float32'}
    files = [file for shard in table['shards'] for file in shard['files']]
    assert {file['name'] for file in files} | {'rows.json'} == set(os.listdir(tmp_path / 'out'))
    for file in files:
        content = (tmp_path / 'out' / file['name']).read_bytes()
        assert (file['size'], file['sha256']) == (
            len(content), hashlib.sha256(content).hexdigest())
    assert listing.read(str(tmp_path / 'out')).tables[0].name == 'scope/t'


@pytest.mark.parametrize('format', ['npy', 'safetensors'])
@pytest.mark.parametrize('code, kind', [('<u2', 'bfloat16'), ('<f2', 'float16'),
                                        ('<f8', 'float64')])
def test_all_bits_of_other_types_are_kept(tmp_path, code, kind, format):
    bits = np.arange(22, dtype='u8') * 0x0badbeefcafe0123
    stored = bits.view(code)[-6:].reshape(3, 2)  # NaN of every kind among them.
    stored[0] = np.array([1, 2], 'u8').view(code)[:2]
    prefix = forged.write(tmp_path / 'model.ckpt-7', {'t': stored})
    export = Export(Bundle.open(prefix), [Chosen('t', [], None)], format, 10**6)
    index = export.carry_out(str(tmp_path / 'out'), FROM)
    assert index.tables[0].tensors[0].dtype == kind
    table, = exported.from_export(str(tmp_path / 'out'), index)
    got, = table.feeds[''].chunks(9)
    assert got.tobytes() == stored.tobytes()


@pytest.mark.parametrize('make, said', [
    (lambda path: path.write_text(''), 'File exists'),
    (lambda path: (path.mkdir(), (path / 'mine').touch()), 'it must be empty or missing; got 1 fi'),
    (lambda path: (path.mkdir(), (path / 'rows.json').touch()), 'rows of an earlier export'),
    (lambda path: (path / '.rows-stage').mkdir(parents=True), 'an export that did not end')])
def test_nothing_that_is_there_is_overwritten(tmp_path, make, said):
    make(tmp_path / 'out')
    before = sorted(map(str, tmp_path.rglob('*')))
    with pytest.raises(CheckpointError) as caught:
        plan(save(tmp_path / 'm')).carry_out(str(tmp_path / 'out'), FROM)
    assert caught.value.code == 'E661' and said in str(caught.value)
    assert [path for path in before if not os.path.lexists(path)] == []
    assert len(list((tmp_path / 'out').glob('*'))) <= 1


def test_an_address_is_no_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match='E661 .*it must be a directory of this machine'):
        plan(save(tmp_path / 'm')).carry_out('gs://bucket/rows', FROM)
    assert os.listdir(tmp_path) == ['m']


def test_a_disk_without_room_is_known_before_a_row_is_written(tmp_path, monkeypatch):
    export = plan(save(tmp_path / 'm'))
    real = os.statvfs(tmp_path)
    monkeypatch.setattr(outgoing.os, 'statvfs', lambda path: os.statvfs_result(
        [*real[:2], 1000, 1, *([0] * 6)]))
    with pytest.raises(CheckpointError, match='E661 .*room for 264 bytes of rows; got 0 bytes fr'):
        export.carry_out(str(tmp_path / 'out'), FROM)
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('was_there', [False, True])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, was_there):
    def full(*arguments):
        raise OSError(errno.ENOSPC, 'No space left on device')

    export = plan(save(tmp_path / 'm'))
    if was_there:
        (tmp_path / 'out').mkdir()
    monkeypatch.setattr(writers, 'writer', full)
    with pytest.raises(CheckpointError, match='E661 .*No space left on device; 264 bytes are need'):
        export.carry_out(str(tmp_path / 'out'), FROM)
    assert (tmp_path / 'out').exists() == was_there
    assert not was_there or os.listdir(tmp_path / 'out') == []


def test_too_many_files_are_refused_before_one_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, 'MAX_FILES', 21)
    with pytest.raises(ConfigError, match='E669 --shard-size: .*at most 21 files; got 22'):
        plan(save(tmp_path / 'm'), shard_bytes=1)


def operations(prefix, out, monkeypatch):
    """How many operations of storage an export takes."""
    faults = Faults()
    faulty(monkeypatch, faults)
    plan(prefix).carry_out(str(out), FROM)
    return len(faults.log)


def faulty(monkeypatch, faults):
    monkeypatch.setattr(outgoing, 'Storage', lambda path: FaultyStorage(path, faults))


def is_whole(out):
    """Whether `rows.json` is there; then all rows must be."""
    index = listing.read(str(out)) if out.exists() else None
    if index is not None:
        table, = exported.from_export(str(out), index)
        np.testing.assert_array_equal(np.concatenate(list(table.feeds[''].chunks(4))), VALUES)
    return index is not None


@pytest.mark.soak
def test_an_export_that_is_killed_at_any_operation_is_whole_or_none(tmp_path, monkeypatch):
    prefix = save(tmp_path / 'm')
    last = operations(prefix, tmp_path / 'out', monkeypatch)
    whole = []
    for number in range(1, last + 1):
        out = tmp_path / f'{number}'
        faulty(monkeypatch, Faults(number))
        assert live(tmp_path / f'log-{number}', 60, lambda: plan(prefix).carry_out(
            str(out), FROM)) == -signal.SIGKILL
        whole.append(is_whole(out))
        if os.listdir(out):
            monkeypatch.setattr(outgoing, 'Storage', Storage)
            with pytest.raises(CheckpointError, match='E661 .*(an earlier|.rows-stage: an) export'):
                plan(prefix).carry_out(str(out), FROM)
    assert last > 15 and not whole[0] and whole[-1] and whole == sorted(whole)


def test_an_export_whose_disk_fails_at_any_operation_is_whole_or_none(tmp_path, monkeypatch):
    prefix = save(tmp_path / 'm')
    last = operations(prefix, tmp_path / 'out', monkeypatch)
    for number in range(1, last + 1):
        out = tmp_path / f'{number}'
        faulty(monkeypatch, Faults(number, 'EIO'))
        with pytest.raises(CheckpointError, match='E661 .*Input/output error'):
            plan(prefix).carry_out(str(out), FROM)
        assert is_whole(out) or not out.exists()


@pytest.mark.parametrize('content', [
    b'', b'{}', b'[]', b'[' * 2**16, b'1' * 2**16, b'\xff', b'{"format": 2, "sha256": ""}',
    b'{"format": true, "sha256": ""}', b'{"format": 1, "sha256": "x"}', b'null'])
def test_a_rows_json_that_cannot_be_so_is_refused(tmp_path, content):
    (tmp_path / 'rows.json').write_bytes(content)
    with pytest.raises(CheckpointError, match='E664 rows.json of .*it must be as etpe checkpoint'):
        listing.read(str(tmp_path))


def edited(directory, change):
    """Changes a `rows.json` and signs it anew, so that readers look at the rest."""
    path = pathlib.Path(directory, 'rows.json')
    fields = json.loads(path.read_text())
    change(fields)
    fields.pop('sha256')
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**fields, 'sha256': digest}))


def first_file(fields):
    return fields['tables'][0]['shards'][0]['files'][0]


@pytest.mark.parametrize('change, said', [
    (lambda fields: first_file(fields).update(name='../x.npy'), 'file "../x.npy"'),
    (lambda fields: first_file(fields).update(name='/dev/zero'), 'file "/dev/zero"'),
    (lambda fields: first_file(fields).update(name='rows.json'), 'file "rows.json"'),
    (lambda fields: first_file(fields).update(size=-1), 'size or SHA-256'),
    (lambda fields: first_file(fields).update(sha256='0'), 'size or SHA-256'),
    (lambda fields: first_file(fields).update(tensors=[]), 'tensors in shards'),
    (lambda fields: fields.update(kind='pickle'), 'kind pickle'),
    (lambda fields: fields.update(more=1), 'more'),
    (lambda fields: fields['checkpoint'].update(step=-1), 'step -1'),
    (lambda fields: fields['tables'].append(fields['tables'][0]), 'occurs twice'),
    (lambda fields: fields['tables'][0].update(rows=0), '0 x 3'),
    (lambda fields: fields['tables'][0].update(name='../t'), 'parts of the name'),
    (lambda fields: fields['tables'][0]['shards'][0].update(rows=0), 'ids 0 and 0 more'),
    (lambda fields: fields['tables'][0]['tensors'][0].update(dtype='int32'), 'tensors of table'),
    (lambda fields: fields['tables'][0]['tensors'][0].update(dtype=[]), 'unhashable')])
def test_a_rows_json_with_impossible_content_is_refused(tmp_path, change, said):
    plan(save(tmp_path / 'm')).carry_out(str(tmp_path / 'out'), FROM)
    edited(tmp_path / 'out', lambda fields: None)
    assert listing.read(str(tmp_path / 'out')) is not None
    edited(tmp_path / 'out', change)
    with pytest.raises(CheckpointError, match='E664') as caught:
        listing.read(str(tmp_path / 'out'))
    assert said in str(caught.value)


def test_ids_of_parquet_files_must_be_those_of_rows_json(tmp_path):
    pytest.importorskip('pyarrow')
    prefix = save(tmp_path / 'm')
    plan(prefix, format='parquet', shard_bytes=10**6).carry_out(str(tmp_path / 'out'), FROM)
    path, = (tmp_path / 'out').glob('*.parquet')
    with open(path, 'wb') as file:  # Ids begin at 1, where rows.json says 0.
        writer = writers.writer('parquet', file, [
            Described(name, 'float32', 3) for name in ('scope/t', 'scope/t/Adagrad')], 1, 11)
        writer.append([VALUES, VALUES])
        writer.finish()
    size, digest = outgoing.hashed(str(path))
    edited(tmp_path / 'out', lambda fields: first_file(fields).update(size=size, sha256=digest))
    with pytest.raises(CheckpointError, match='E665 file .*its column id must count from 0; got'):
        exported.from_export(str(tmp_path / 'out'), listing.read(str(tmp_path / 'out')))


@pytest.mark.parametrize('first_ids, said', [
    ([0, 5, 9], '1 twice: 9 to 9'), ([0, 6, 10], '1 missing: 5 to 5'),
    ([1, 6, 11], '1 too large: 11 to 11'), ([0, 0, 10], '5 twice: 0 to 4')])
def test_ids_that_shards_leave_out_or_repeat_are_counted(tmp_path, first_ids, said):
    plan(save(tmp_path / 'm')).carry_out(str(tmp_path / 'out'), FROM)

    def change(fields):
        for shard, first in zip(fields['tables'][0]['shards'], first_ids):
            shard['first_id'] = first

    edited(tmp_path / 'out', change)
    with pytest.raises(CheckpointError) as caught:
        exported.from_export(str(tmp_path / 'out'), listing.read(str(tmp_path / 'out')))
    assert {problem.code for problem in caught.value.problems} == {'E667'}
    assert said in str(caught.value)
