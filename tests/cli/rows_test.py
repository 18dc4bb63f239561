"""`etpe checkpoint export` and `import`: tables out of checkpoints, and into new ones."""

import json
import os
import pathlib
import re
import urllib.parse

import numpy as np
import pytest
from google.protobuf import text_format
from harness.forged_job import IDS, VALUES, save
from harness.tensorboard import served
from tensorboard.plugins import projector

from estimator_tpu_embedding.checkpoint import stored_rows
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.file_names import MANIFEST
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.migration import rows_import

KEY = '/.ATTRIBUTES/VARIABLE_VALUE'


def table_of(prefix, name='t'):
    """All stored rows of a tensor."""
    return Bundle.open(str(prefix)).read(name, 0, Bundle.open(str(prefix)).tensors[name].rows)


def put(directory, **arrays):
    """Writes arrays as `.npy` files."""
    directory.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(directory / f'{name}.npy', array)
    return directory


@pytest.mark.parametrize('format', ['npy', 'safetensors', 'parquet'])
@pytest.mark.parametrize('strategy, hosts', [('div', 2), ('mod', 3)])
def test_what_is_exported_and_imported_is_the_same_bit_for_bit(
        etpe, tmp_path, monkeypatch, format, strategy, hosts):
    monkeypatch.setattr(stored_rows, '_CHUNK', 64)  # A few rows.
    prefix = save(tmp_path / 'm', strategy=strategy, hosts=hosts)
    report = etpe.json('checkpoint', 'export', prefix, '--slots', '--format', format, '-o',
                       tmp_path / 'a', form='--report')
    assert report['command'] == 'checkpoint export' and report['format'] == format
    table, = report['tables']
    files = [one['file'] for one in table['tensors']]
    assert table['rows'] == IDS and [one['slot'] for one in table['tensors']] == ['', 'Adagrad']
    assert sorted(set(files)) == sorted(os.listdir(tmp_path / 'a'))
    column = ':scope/t' if format != 'npy' else ''
    report = etpe.json('checkpoint', 'import', tmp_path / 'a', tmp_path / 'c', '--table',
                       f'scope/t={files[0]}{column}')
    assert report['tables'] == [{'name': 'scope/t', 'rows': IDS, 'width': 3}]
    assert '~  scope/t  rows' not in (
        etpe('checkpoint', 'diff', prefix, tmp_path / 'c', status=1))
    np.testing.assert_array_equal(table_of(tmp_path / 'c' / 'model.ckpt-0', 'scope/t'), VALUES)
    assert etpe('checkpoint', 'verify', tmp_path / 'c').endswith('sound by the SHA-256 of its fi'
                                                                 'les\n')


@pytest.mark.parametrize('strategy, hosts', [('div', 2), ('mod', 3)])
def test_the_embedding_projector_opens_what_is_written_for_it(etpe, tmp_path, strategy, hosts):
    etpe('checkpoint', 'export', save(tmp_path / 'm', strategy=strategy, hosts=hosts),
         '--projector', '-o', tmp_path / 'a')
    config = text_format.Parse((tmp_path / 'a' / 'projector_config.pbtxt').read_text(),
                               projector.ProjectorConfig())
    embedding, = config.embeddings
    assert embedding.tensor_name == 'scope/t'
    np.testing.assert_array_equal(np.loadtxt(tmp_path / 'a' / embedding.tensor_path), VALUES)
    labels = (tmp_path / 'a' / embedding.metadata_path).read_text()
    assert labels.split() == [str(id) for id in range(IDS)]


@pytest.mark.soak
def test_a_real_tensorboard_serves_the_projector_all_rows(etpe, tmp_path):
    etpe('checkpoint', 'export', save(tmp_path / 'm', strategy='mod', hosts=3), '--projector',
         '-o', tmp_path / 'a')
    with served(tmp_path / 'a') as get:
        run, = json.loads(get('projector/runs'))
        of_run = f'?run={urllib.parse.quote(run)}'
        embedding, = json.loads(get(f'projector/info{of_run}'))['embeddings']
        assert (embedding['tensorName'], embedding['tensorShape']) == ('scope/t', [IDS, 3])
        named = f'{of_run}&name=scope/t'
        rows = np.frombuffer(get(f'projector/tensor{named}'), np.float32)
        np.testing.assert_array_equal(rows.reshape(IDS, 3), VALUES)
        assert get(f'projector/metadata{named}').split() == [b'%d' % id for id in range(IDS)]


def test_without_a_manifest_somebody_must_say_the_order(etpe, tmp_path):
    prefix = save(tmp_path / 'm', strategy='mod', hosts=3)
    pathlib.Path(prefix + MANIFEST).unlink()
    export = ('checkpoint', 'export', prefix, '--slots', '-o', tmp_path / 'a')
    assert 'E608 checkpoint model.ckpt-7: ' in etpe(*export, status=2)
    etpe(*export, '--assume', 'mod:3')
    for which, factor in (('rows', 1), ('Adagrad', 2)):
        path, = (tmp_path / 'a').glob(f'*.{which}.npy')
        np.testing.assert_array_equal(np.load(path), VALUES * factor)


def test_tables_of_tf2_are_found_by_their_keys_and_are_in_order(etpe, tmp_path):
    tf = pytest.importorskip('tensorflow')
    api = tf.tpu.experimental.embedding
    embedding = api.TPUEmbeddingForServing(
        api.FeatureConfig(api.TableConfig(4, 2, name='user')), api.Adam(.1))
    embedding.build()
    prefix = tf.train.Checkpoint(embedding=embedding).save(str(tmp_path / 'm' / 'ckpt'))
    export = ('checkpoint', 'export', prefix, '-o', tmp_path / 'a')
    assert 'E662 --table: it must say which variables are tables' in etpe(*export, status=2)
    etpe(*export, '--table', 'user', '--table', 'user.Smomenta')
    table, _ = sorted((tmp_path / 'a').iterdir())
    np.testing.assert_array_equal(np.load(table), table_of(prefix, f'embedding/user{KEY}'))


def test_a_damaged_checkpoint_is_not_exported(etpe, tmp_path):
    prefix = save(tmp_path / 'm')
    data = pathlib.Path(f'{prefix}.data-00000-of-00001')
    data.write_bytes(data.read_bytes()[:-1] + b'x')
    export = ('checkpoint', 'export', prefix, '-o', tmp_path / 'a')
    assert 'E618' in etpe(*export, status=2) and not (tmp_path / 'a').exists()
    assert 'not verified' in etpe(*export, '--no-verify')


def test_a_matrix_from_elsewhere_becomes_a_table(etpe, tmp_path):
    put(tmp_path / 'd', a=VALUES)
    etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'c' / 'model.ckpt-5',
         '--table', 'words=a.npy')
    prefix = tmp_path / 'c' / 'model.ckpt-5'
    np.testing.assert_array_equal(table_of(prefix, 'words'), VALUES)
    assert table_of(prefix, 'global_step').tolist() == [5]
    assert read_manifest(str(prefix)).tables['words'].rows == IDS


@pytest.mark.parametrize('dtype', ['i4', 'u8', '>i2'])
def test_ids_say_which_row_is_whose(etpe, tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(rows_import, 'WINDOW', 24)  # two rows
    ids = np.random.default_rng(1).permutation(IDS)
    put(tmp_path / 'd', a=VALUES[ids], i=ids.astype(dtype))
    etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', '--table', 't=a.npy',
         '--ids', 't=i.npy')
    np.testing.assert_array_equal(table_of(tmp_path / 'c' / 'model.ckpt-0'), VALUES)


def test_a_column_id_of_parquet_says_it_too(etpe, tmp_path):
    pyarrow = pytest.importorskip('pyarrow')
    from pyarrow import parquet
    parquet.write_table(pyarrow.table({
        'v': VALUES[::-1].tolist(), 'id': list(range(IDS))[::-1]}, pyarrow.schema([
            ('v', pyarrow.list_(pyarrow.float32())), ('id', pyarrow.int32())])),
        tmp_path / 'r.parquet')
    start = ('checkpoint', 'import', tmp_path, tmp_path / 'c', '--table')
    etpe(*start, 't=r.parquet:v')
    np.testing.assert_array_equal(table_of(tmp_path / 'c' / 'model.ckpt-0'), VALUES)
    for column, said in (('', 'a column of it must be named; got "v" float32 [11, 3], "id" int32'),
                         (':x', 'E665 file r.parquet: it must have a column "x"; got "v"')):
        assert said in etpe(*start, f't=r.parquet{column}', status=2)


BAD = [
    ({'r': VALUES.astype('f8')}, '', 'E666 table "t": its rows must be float32; got float64 [11, '
     '3] in file r.npy.  Convert them where they come from.'),
    ({'r': VALUES[0]}, '', 'E666 table "t": its rows must be a matrix [ids, width]'),
    ({'r': VALUES[:, :0]}, '', 'E666 table "t": it must have rows'),
    ({'r': VALUES, 'i': np.arange(3)}, 'i', 'E666 table "t": each of its rows must have an id'),
    ({'r': VALUES, 'i': np.arange(IDS) * 1.}, 'i', 'E666 table "t": its ids must be a vector of i'),
    ({'r': np.where(VALUES == 8, np.nan, VALUES)}, '', 'E668 table "t": all numbers of rows must '
     'be finite; got NaN or infinity in the rows of 1 id: 2.'),
    ({'r': VALUES, 'i': np.arange(IDS) - 2}, 'i', 'E667 table "t": ids must be in [0, 11), as '
     'there are so many rows; got 2 ids: -2, -1.'),
    ({'r': VALUES, 'i': np.arange(IDS) // 2}, 'i', 'an id must come once; got again 5 ids: 0, 1, '),
    ({'r': VALUES, 'i': np.uint64([2**64 - 1] * IDS)}, 'i', 'ids must be in [0, 11)'),
]


@pytest.mark.parametrize('arrays, ids, said', BAD)
def test_rows_that_are_no_table_are_refused_with_what_is_wrong(etpe, tmp_path, arrays, ids, said):
    put(tmp_path / 'd', **arrays)
    assert said in etpe(
        'checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', '--table', 't=r.npy',
        *(['--ids', f't={ids}.npy'] if ids else []), status=2)
    assert not (tmp_path / 'c').exists()


@pytest.mark.parametrize('arguments, said', [
    (['--table', 'r.npy'], "E669 --table: it must be NAME=FILE.*; got 'r.npy'"),
    (['--table', 't=r.npy', '--ids', 'u=i.npy'], 'E669 --ids: each table must have rows'),
    (['--table', '../t=r.npy'], 'E403 table "../t"'),
    (['--table', 'global_step=r.npy'], 'E669 --table: .*none is global_step'),
    (['--table', 't=r.npy', '--ids', 't=i.npy', '--ids', 't=i.npy'], 'E669 --table: each table')])
def test_arguments_that_mean_nothing_are_refused(etpe, tmp_path, arguments, said):
    put(tmp_path / 'd', r=VALUES, i=np.arange(IDS))
    text = etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', *arguments, status=2)
    assert re.search(said, text), text
    assert not (tmp_path / 'c').exists()


def test_an_import_displaces_no_checkpoint(etpe, tmp_path, monkeypatch):
    save(tmp_path / 'm', 3)
    put(tmp_path / 'd', r=VALUES)
    command = ('checkpoint', 'import', tmp_path / 'd', tmp_path / 'm', '--table', 't=r.npy')
    before = sorted(os.listdir(tmp_path / 'm'))
    assert 'it must be missing, or hold no checkpoint; got model.ckpt-3.' in etpe(
        *command, status=2)
    assert sorted(os.listdir(tmp_path / 'm')) == before
    real = os.statvfs(tmp_path)
    monkeypatch.setattr(rows_import.os, 'statvfs', lambda path: os.statvfs_result(
        [*real[:2], 1000, 1, *([0] * 6)]))
    assert 'the disk must have room for 132 bytes of rows; got 0 bytes free' in etpe(
        *command[:3], tmp_path / 'c', *command[4:], status=2)
