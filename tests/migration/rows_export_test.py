"""Exports: rows in the order of ids, bit for bit, and nothing half-made is ever taken for whole."""

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
from estimator_tpu_embedding.errors import CheckpointError, ConfigError
from estimator_tpu_embedding.migration import rows_export
from estimator_tpu_embedding.migration.rows_export import Chosen, candidates, chosen, export


def plan(prefix):
    """A function that exports the table and its slot into a directory."""
    tables = [Chosen('scope/t', ['Adagrad'], None)]
    return lambda directory: export(Bundle.open(prefix), tables, 'npy', str(directory))


def test_all_bits_of_types_that_numpy_lacks_are_kept(tmp_path):
    bits = (np.arange(22, dtype='u8') * 0x0badbeefcafe0123).view('<u2')[-6:].reshape(3, 2)
    prefix = forged.write(tmp_path / 'model.ckpt-7', {'t': bits})
    (one,), = export(Bundle.open(prefix), [Chosen('t', [], None)], 'npy', str(tmp_path / 'out'))
    assert one.tensor.kind == 'bfloat16'
    np.testing.assert_array_equal(np.load(tmp_path / 'out' / one.file), bits)


@pytest.mark.parametrize('make, said', [
    (lambda path: path.write_text(''), 'Not a directory'),
    (lambda path: (path.mkdir(), (path / 'mine').touch()), 'it must be empty or missing; got "mi'),
    (lambda path: path.with_name('out~').mkdir(), 'no other export may write it')])
def test_nothing_that_is_there_is_overwritten(tmp_path, make, said):
    start = plan(save(tmp_path / 'm'))
    make(tmp_path / 'out')
    before = sorted(map(str, tmp_path.rglob('*')))
    with pytest.raises(CheckpointError) as caught:
        start(tmp_path / 'out')
    assert caught.value.code == 'E661' and said in str(caught.value)
    assert sorted(map(str, tmp_path.rglob('*'))) == before


def test_a_disk_without_room_is_known_before_a_row_is_written(tmp_path, monkeypatch):
    start = plan(save(tmp_path / 'm'))
    real = os.statvfs(tmp_path)
    monkeypatch.setattr(rows_export.os, 'statvfs', lambda path: os.statvfs_result(
        [*real[:2], 1000, 1, *([0] * 6)]))
    with pytest.raises(CheckpointError, match='E661 .*room for 264 bytes of rows; got 0 bytes fr'):
        start(tmp_path / 'out')
    assert os.listdir(tmp_path) == ['m']


def faulty(monkeypatch, faults):
    monkeypatch.setattr(rows_export, 'Storage', lambda path: FaultyStorage(path, faults))
    return faults


def is_whole(out):
    """Whether the directory is there; then all rows must be."""
    if out.exists():
        np.testing.assert_array_equal(np.load(out / '0-scope-t.rows.npy'), VALUES)
        np.testing.assert_array_equal(np.load(out / '0-scope-t.Adagrad.npy'), VALUES * 2)
    return out.exists()


@pytest.mark.parametrize('kind', [pytest.param('kill', marks=pytest.mark.soak), 'EIO'])
def test_an_export_that_ends_at_any_operation_is_whole_or_none(tmp_path, monkeypatch, kind):
    start = plan(save(tmp_path / 'm'))
    counted = faulty(monkeypatch, Faults())
    start(tmp_path / 'out')
    whole = []
    for number in range(1, len(counted.log) + 1):
        out = tmp_path / f'{number}'
        if kind == 'kill':
            faulty(monkeypatch, Faults(number))
            assert live(tmp_path / f'log-{number}', 60, lambda: start(out)) == -signal.SIGKILL
        else:
            faulty(monkeypatch, Faults(number, 'EIO'))
            with pytest.raises(CheckpointError, match='E661 .*Input/output error'):
                start(out)
            assert not (tmp_path / f'{number}~').exists()
        whole.append(is_whole(out))
    assert len(whole) > 5 and not whole[0] and whole == sorted(whole)


def test_slots_of_tf1_are_found_by_their_names_and_are_no_tables(tmp_path):
    tensors = {'a/t': VALUES, 'a/t/Adam/m': VALUES, 'a/t/Adam/v': VALUES, 'a/t/mean': VALUES,
               'b/t': VALUES, 'bias': VALUES[0]}
    bundle = Bundle.open(forged.write(tmp_path / 'model.ckpt-1', tensors))
    found = candidates(bundle, {
        name: StoredTable(rows=11, width=3, strategy='mod', hosts=2, slots=())
        for name in ('a/t', 'a/t/Adam/m', 'a/t/Adam/v', 'a/t/mean', 'b/t')}, None)
    assert {name: one.slots for name, one in found.items()} == {
        'a/t': ['Adam/m', 'Adam/v'], 'a/t/mean': [], 'b/t': []}
    assert [one.name for one in chosen(['a/t'], found, False)] == ['a/t']
    for name, said in (('t', 'got several.  There: "a/t", "b/t".'), ('x', 'none of that name')):
        with pytest.raises(ConfigError, match='E662 --table') as caught:
            chosen([name], found, False)
        assert said in str(caught.value)
