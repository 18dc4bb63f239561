"""Exports: rows in the order of ids, bit for bit, and nothing half-made is ever taken for whole."""

import json
import os
import signal

import numpy as np
import pytest
from harness import forged
from harness.faults import Faults, FaultyStorage
from harness.forged_job import VALUES, save
from harness.kill_job import live

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.manifest import StoredTable
from estimator_tpu_embedding.checkpoint.storage import Storage
from estimator_tpu_embedding.core.partition import Partition
from estimator_tpu_embedding.errors import CheckpointError, ConfigError
from estimator_tpu_embedding.migration.rows import files, outgoing
from estimator_tpu_embedding.migration.rows.incoming import exported
from estimator_tpu_embedding.migration.rows.outgoing import Chosen, chosen, export


def plan(prefix, strategy='div', hosts=1, format='npy'):
    """A function that exports the table and its slot into a directory."""
    partition = Partition(strategy=strategy, vocabulary_size=len(VALUES), num_hosts=hosts)
    tables = [Chosen('scope/t', [('Adagrad', 'scope/t/Adagrad')], partition)]
    return lambda directory: export(
        Bundle.open(prefix), tables, format, str(directory), name='model.ckpt-7', step=7)


@pytest.mark.parametrize('strategy', ['div', 'mod'])
@pytest.mark.parametrize('hosts', [1, 2, 3, 5])
def test_rows_come_in_the_order_of_ids_however_they_are_stored(
        tmp_path, monkeypatch, strategy, hosts):
    monkeypatch.setattr(outgoing, 'step_of', lambda row_bytes: 4)
    prefix = save(tmp_path / 'm', strategy=strategy, hosts=hosts)
    plan(prefix, strategy, hosts)(tmp_path / 'out')
    for name, factor in (('rows', 1), ('Adagrad', 2)):
        np.testing.assert_array_equal(
            np.load(tmp_path / 'out' / f'0-scope-t.{name}.npy'), VALUES * factor)


@pytest.mark.parametrize('format', ['npy', 'safetensors'])
@pytest.mark.parametrize('code, kind', [('<u2', 'bfloat16'), ('<f2', 'float16'),
                                        ('<f8', 'float64')])
def test_all_bits_of_other_types_are_kept(tmp_path, code, kind, format):
    bits = np.arange(22, dtype='u8') * 0x0badbeefcafe0123
    stored = bits.view(code)[-6:].reshape(3, 2)  # NaN of every kind among them.
    stored[0] = np.array([1, 2], 'u8').view(code)[:2]
    prefix = forged.write(tmp_path / 'model.ckpt-7', {'t': stored})
    table, = export(Bundle.open(prefix), [Chosen('t', [], None)], format, str(tmp_path / 'out'),
                    name='model.ckpt-7', step=7)
    assert table['tensors'][0]['dtype'] == kind
    (table,), step = exported(str(tmp_path / 'out'))
    got, = table.feeds[''].column.chunks()
    assert got.tobytes() == stored.tobytes() and step == 7


@pytest.mark.parametrize('make, said', [
    (lambda path: path.write_text(''), 'File exists'),
    (lambda path: (path.mkdir(), (path / 'mine').touch()), 'it must be empty or missing; got 1 fi'),
    (lambda path: (path.mkdir(), (path / 'rows.json').touch()), 'rows of an earlier export'),
    (lambda path: (path.mkdir(), (path / '0-t.npy').touch()), 'an export that did not end')])
def test_nothing_that_is_there_is_overwritten(tmp_path, make, said):
    make(tmp_path / 'out')
    before = sorted(map(str, tmp_path.rglob('*')))
    with pytest.raises(CheckpointError) as caught:
        plan(save(tmp_path / 'm'))(tmp_path / 'out')
    assert caught.value.code == 'E661' and said in str(caught.value)
    assert [path for path in before if not os.path.lexists(path)] == []
    assert len(list((tmp_path / 'out').glob('*'))) <= 1


def test_a_disk_without_room_is_known_before_a_row_is_written(tmp_path, monkeypatch):
    start = plan(save(tmp_path / 'm'))
    real = os.statvfs(tmp_path)
    monkeypatch.setattr(outgoing.os, 'statvfs', lambda path: os.statvfs_result(
        [*real[:2], 1000, 1, *([0] * 6)]))
    with pytest.raises(CheckpointError, match='E661 .*room for 264 bytes of rows; got 0 bytes fr'):
        start(tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def operations(prefix, out, monkeypatch):
    """How many operations of storage an export takes."""
    faults = Faults()
    faulty(monkeypatch, faults)
    plan(prefix)(out)
    return len(faults.log)


def faulty(monkeypatch, faults):
    monkeypatch.setattr(outgoing, 'Storage', lambda path: FaultyStorage(path, faults))


def is_whole(out):
    """Whether `rows.json` is there; then all rows must be."""
    found = exported(str(out)) if out.exists() else None
    if found is not None:
        np.testing.assert_array_equal(
            np.concatenate(list(found[0][0].feeds[''].column.chunks())), VALUES)
    return found is not None


@pytest.mark.soak
def test_an_export_that_is_killed_at_any_operation_is_whole_or_none(tmp_path, monkeypatch):
    prefix = save(tmp_path / 'm')
    last = operations(prefix, tmp_path / 'out', monkeypatch)
    whole = []
    for number in range(1, last + 1):
        out = tmp_path / f'{number}'
        faulty(monkeypatch, Faults(number))
        assert live(tmp_path / f'log-{number}', 60, lambda: plan(prefix)(out)) == -signal.SIGKILL
        whole.append(is_whole(out))
        if os.listdir(out):
            monkeypatch.setattr(outgoing, 'Storage', Storage)
            with pytest.raises(CheckpointError, match='E661 .*(an earlier|an) export'):
                plan(prefix)(out)
    assert last > 6 and not whole[0] and whole[-1] and whole == sorted(whole)


def test_an_export_whose_disk_fails_at_any_operation_is_whole_or_none(tmp_path, monkeypatch):
    prefix = save(tmp_path / 'm')
    last = operations(prefix, tmp_path / 'out', monkeypatch)
    for number in range(1, last + 1):
        out = tmp_path / f'{number}'
        faulty(monkeypatch, Faults(number, 'EIO'))
        with pytest.raises(CheckpointError, match='E661 .*Input/output error'):
            plan(prefix)(out)
        assert is_whole(out) or not out.exists()


@pytest.mark.parametrize('content', [
    b'', b'{}', b'[]', b'[' * 2**16, b'1' * 2**16, b'\xff', b'{"format": 1}', b'null'])
def test_a_rows_json_that_cannot_be_so_is_refused(tmp_path, content):
    (tmp_path / 'rows.json').write_bytes(content)
    with pytest.raises(CheckpointError, match='E664 rows.json of .*it must be as etpe checkpoint'):
        exported(str(tmp_path))


def slot(fields):
    return fields['tables'][0]['tensors'][1]


@pytest.mark.parametrize('change, code, said', [
    (lambda fields: slot(fields).update(file='../x.npy'), 'E665', 'without a directory'),
    (lambda fields: slot(fields).update(file='/dev/zero'), 'E665', 'its name must end'),
    (lambda fields: slot(fields).update(sha256='0'), 'E665', 'as it was written'),
    (lambda fields: slot(fields).update(column='x'), 'E666', 'no column for it'),
    (lambda fields: slot(fields).update(dtype='float64'), 'E666', 'rows of float64'),
    (lambda fields: slot(fields).update(dtype='int32'), 'E664', 'type int32'),
    (lambda fields: slot(fields).update(dtype=[]), 'E664', 'unhashable'),
    (lambda fields: slot(fields).update(slot=''), 'E664', 'slots'),
    (lambda fields: fields.update(kind='pickle'), 'E664', 'of pickle'),
    (lambda fields: fields['checkpoint'].update(step=-1), 'E664', 'step -1'),
    (lambda fields: fields['tables'][0].update(name='../t'), 'E664', 'parts of the name'),
    (lambda fields: fields['tables'][0].update(tensors=[]), 'E664', 'slots []')])
def test_a_rows_json_with_impossible_content_is_refused(tmp_path, change, code, said):
    plan(save(tmp_path / 'm'))(tmp_path / 'out')
    path = tmp_path / 'out' / 'rows.json'
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))
    with pytest.raises(CheckpointError) as caught:
        exported(str(tmp_path / 'out'))
    assert caught.value.code == code and said in str(caught.value)


def test_ids_of_parquet_files_must_count_from_0(tmp_path):
    pytest.importorskip('pyarrow')
    from pyarrow import compute, parquet
    plan(save(tmp_path / 'm'), format='parquet')(tmp_path / 'out')
    path, listed = tmp_path / 'out' / '0-scope-t.parquet', tmp_path / 'out' / 'rows.json'
    table, before = parquet.read_table(path), files.hashed(str(path))
    parquet.write_table(table.set_column(0, 'id', compute.add(table['id'], 1)), path)
    listed.write_text(listed.read_text().replace(before, files.hashed(str(path))))
    with pytest.raises(CheckpointError, match='E665 file .*its column id must count from 0; got'):
        exported(str(tmp_path / 'out'))


def candidates(tmp_path, tensors, assume=()):
    """The tables among tensors without a manifest; those of `assume` have a known order."""
    bundle = Bundle.open(forged.write(tmp_path / 'model.ckpt-1', tensors))
    tables = {name: StoredTable(rows=11, width=3, strategy='mod', hosts=2, slots=())
              for name in assume}
    return outgoing.candidates(bundle, tables, None)


def test_variables_of_tf2_are_found_by_their_keys_and_are_in_order(tmp_path):
    key = '/.ATTRIBUTES/VARIABLE_VALUE'
    found = candidates(tmp_path, {
        name: VALUES for name in (f'e/user{key}', f'e/user.Smomenta{key}', '_CHECKPOINTABLE_OBJECT_'
                                  'GRAPH', f'e/user/.OPTIMIZER_SLOT/opt/m{key}')})
    assert found == {name: Chosen(name, [], None) for name in (
        f'e/user{key}', f'e/user.Smomenta{key}')}
    assert chosen(['user'], found, with_slots=True) == [found[f'e/user{key}']]
    with pytest.raises(ConfigError, match='E662 --table: it must say which variables are tables'):
        chosen([], found, with_slots=True)


def test_slots_of_tf1_are_found_by_their_names_and_are_no_tables(tmp_path):
    tensors = {'a/t': VALUES, 'a/t/Adam/m': VALUES, 'a/t/Adam/v': VALUES, 'a/t/mean': VALUES,
               'b/t': VALUES, 'bias': VALUES[0]}
    found = candidates(tmp_path, tensors, ['a/t', 'a/t/Adam/m', 'a/t/Adam/v', 'a/t/mean', 'b/t'])
    assert {name: [slot for slot, _ in one.slots] for name, one in found.items()} == {
        'a/t': ['Adam/m', 'Adam/v'], 'a/t/mean': [], 'b/t': []}
    assert [one.name for one in chosen(['a/t'], found, False)] == ['a/t']
    for name, said in (('t', 'got several.  There: "a/t", "b/t".'), ('x', 'none of that name')):
        with pytest.raises(ConfigError, match='E662 --table') as caught:
            chosen([name], found, False)
        assert said in str(caught.value)
