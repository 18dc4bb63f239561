"""`etpe checkpoint export` and `import`: tables out of checkpoints, and into new ones."""

import os
import pathlib

import numpy as np
import pytest
from harness.forged_job import IDS, VALUES, save

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.file_names import manifest_path
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.migration.rows import built

FORMATS = ['npy', 'safetensors', 'parquet']
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


@pytest.mark.parametrize('format', FORMATS)
@pytest.mark.parametrize('strategy, hosts', [('div', 2), ('mod', 3)])
def test_what_is_exported_and_imported_is_the_same_bit_for_bit(
        etpe, tmp_path, format, strategy, hosts):
    if format == 'parquet':
        pytest.importorskip('pyarrow')
    prefix = save(tmp_path / 'm', strategy=strategy, hosts=hosts)
    flags = ('--slots', '--format', format)
    report = etpe.json('checkpoint', 'export', prefix, *flags, '-o', tmp_path / 'a',
                       form='--report')
    assert report['command'] == 'checkpoint export' and report['format'] == format
    table, = report['tables']
    assert (table['files'], table['rows']) == (1 + (format == 'npy'), IDS)
    report = etpe.json('checkpoint', 'import', tmp_path / 'a', tmp_path / 'c')
    assert report['tables'] == [{'name': 'scope/t', 'rows': IDS, 'width': 3, 'dtype': 'float32',
                                 'slots': ['Adagrad'], 'came': IDS}]
    assert etpe('checkpoint', 'diff', prefix, tmp_path / 'c', status=1).endswith(
        '-  dense  float64 [2]\n1 difference\n')
    assert etpe('checkpoint', 'verify', tmp_path / 'c').endswith('sound by the SHA-256 of its fi'
                                                                 'les\n')
    etpe('checkpoint', 'export', tmp_path / 'c', *flags, '-o', tmp_path / 'b')
    for path in (tmp_path / 'a').iterdir():
        if path.name != 'rows.json':
            assert path.read_bytes() == (tmp_path / 'b' / path.name).read_bytes()


def test_without_a_manifest_somebody_must_say_the_order(etpe, tmp_path):
    prefix = save(tmp_path / 'm', strategy='mod', hosts=3)
    pathlib.Path(manifest_path(prefix)).unlink()
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
    table, = (tmp_path / 'a').glob('0-*.npy')
    np.testing.assert_array_equal(np.load(table), table_of(prefix, f'embedding/user{KEY}'))
    etpe('checkpoint', 'import', tmp_path / 'a', tmp_path / 'c', '--rename', 'user=scope/user')
    assert {'scope/user', f'embedding/user.Smomenta{KEY}'} < (
        Bundle.open(str(tmp_path / 'c' / 'model.ckpt-0')).tensors.keys())


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


@pytest.mark.parametrize('dtype', ['i4', 'i8', 'u8', '>i2'])
def test_ids_say_which_row_is_whose(etpe, tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(built, 'WINDOW', 24)  # two rows
    ids = np.random.default_rng(1).permutation(IDS)
    put(tmp_path / 'd', a=VALUES[ids], i=ids.astype(dtype))
    etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', '--table', 't=a.npy',
         '--ids', 't=i.npy')
    np.testing.assert_array_equal(table_of(tmp_path / 'c' / 'model.ckpt-0'), VALUES)


@pytest.mark.parametrize('format', FORMATS[1:])
def test_a_column_id_says_it_too(etpe, tmp_path, format):
    (tmp_path / 'd').mkdir()
    path = tmp_path / 'd' / f'r.{format}'
    if format == 'parquet':
        pyarrow = pytest.importorskip('pyarrow')
        from pyarrow import parquet
        parquet.write_table(pyarrow.table({
            'v': VALUES[::-1].tolist(), 'id': list(range(IDS))[::-1]}, pyarrow.schema([
                ('v', pyarrow.list_(pyarrow.float32())), ('id', pyarrow.int32())])), path)
    else:
        pytest.importorskip('safetensors.numpy').save_file(
            {'v': VALUES[::-1].copy(), 'id': np.arange(IDS)[::-1].copy()}, path)
    etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', '--table', f't={path.name}')
    np.testing.assert_array_equal(table_of(tmp_path / 'c' / 'model.ckpt-0'), VALUES)
    assert 'E665 file' in etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'e', '--table',
                               f't={path.name}:other', status=2)


@pytest.mark.parametrize('strategy, hosts', [('div', 2), ('mod', 3)])
def test_with_a_base_rows_are_replaced_and_everything_else_is_kept(
        etpe, tmp_path, monkeypatch, strategy, hosts):
    monkeypatch.setattr(built, 'WINDOW', 24)  # two rows
    base = save(tmp_path / 'm', strategy=strategy, hosts=hosts)
    put(tmp_path / 'd', r=np.float32([[7, 7, 7], [8, 8, 8]]), i=np.array([9, 3]))
    etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', '--base', base, '--table',
         't=r.npy', '--ids', 't=i.npy')
    different, = etpe.json('checkpoint', 'diff', base, tmp_path / 'c', status=1)['differences']
    assert (different['name'], different['ids']) == ('scope/t', [[3, 4.], [9, 23.]])
    assert read_manifest(str(tmp_path / 'c' / 'model.ckpt-7')).tables == read_manifest(base).tables
    etpe('checkpoint', 'export', base, '--slots', '-o', tmp_path / 'e')
    etpe('checkpoint', 'import', tmp_path / 'e', tmp_path / 'f', '--base', tmp_path / 'c')
    assert etpe('checkpoint', 'diff', base, tmp_path / 'f') == 'no differences\n'


BAD = [
    ({'r': VALUES.astype('f8')}, '', 'E666 table "t": its rows must be float32; got float64 [11, '
     '3] in file r.npy.  Convert them where they come from.'),
    ({'r': VALUES.astype('i4')}, '', 'E665 file r.npy: it must hold one matrix of floats'),
    ({'r': VALUES[0]}, '', 'E665 file r.npy: it must hold one matrix of floats'),
    ({'r': VALUES[:0]}, '', 'E666 table "t": it must have rows'),
    ({'r': VALUES[:, :0]}, '', 'E666 table "t": it must have rows'),
    ({'r': VALUES, 'i': np.arange(3)}, 'i', 'E666 table "t": each of its rows must have an id'),
    ({'r': VALUES, 'i': np.arange(IDS) * 1.}, 'i', 'E665 file i.npy: it must hold one vector of i'),
    ({'r': np.where(VALUES == 8, np.nan, VALUES)}, '', 'E668 table "t": all numbers of rows must '
     'be finite; got NaN or infinity in the rows of 1 id: 2.'),
    ({'r': VALUES, 'i': np.arange(IDS) - 2}, 'i', 'ids must be in [0, 9); got 2 ids: -2, -1.'),
    ({'r': VALUES, 'i': np.arange(IDS) // 2}, 'i', 'an id must come once; got again 5 ids: 0, 1, '),
    ({'r': VALUES, 'i': np.arange(IDS) * 2}, 'i', 'all ids in [0, 21) must come; got without 10 '
     'ids: 1, 3, 5, 7, 9, ...  Add'),
    ({'r': VALUES, 'i': np.uint64([2**64 - 1] * IDS)}, 'i', 'ids must be < 2,147,483,647; got'),
]


@pytest.mark.parametrize('arrays, ids, said', BAD)
def test_rows_that_are_no_table_are_refused_with_what_is_wrong(etpe, tmp_path, arrays, ids, said):
    put(tmp_path / 'd', **arrays)
    assert said in etpe(
        'checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', '--table', 't=r.npy',
        *(['--ids', f't={ids}.npy'] if ids else []), status=2)
    assert not (tmp_path / 'c').exists()


@pytest.mark.parametrize('damage, said', [
    (lambda path: path.unlink(), 'No such file'),
    (lambda path: path.write_bytes(path.read_bytes()[:-1]), 'it must be readable; got mmap length'),
    (lambda path: path.write_bytes(path.read_bytes()[:-1] + b'x'), 'it must be as it was writt'),
    (lambda path: (path.unlink(), os.mkfifo(path)), 'a pipe, socket or device'),
    (lambda path: (path.rename(f'{path}~'), path.symlink_to(f'{path}~')), 'a link')])
def test_a_file_of_an_export_that_was_changed_is_refused(etpe, tmp_path, damage, said):
    etpe('checkpoint', 'export', save(tmp_path / 'm'), '-o', tmp_path / 'a')
    path, = (tmp_path / 'a').glob('*.npy')
    damage(path)
    text = etpe('checkpoint', 'import', tmp_path / 'a', tmp_path / 'c', status=2)
    assert f'E665 file {path.name}: ' in text and said in text
    assert not (tmp_path / 'c').exists()


@pytest.mark.parametrize('arguments, said', [
    ([], 'E665 directory .*it must be an export, with rows.json'),
    (['--table', 'r.npy'], "E669 --table: it must be NAME=FILE .*; got 'r.npy'"),
    (['--table', 't=../d/r.npy'], 'E665 file ../d/r.npy: it must be a name of a file in DIR'),
    (['--table', 't=r.npy', '--ids', 'u=i.npy'], 'E669 --ids: each table must have rows'),
    (['--table', '../t=r.npy'], 'E403 table "../t"'),
    (['--table', 't=r.npy', '--rename', 't=u'], 'E669 --rename: it is for tables of an export'),
    (['--table', 'global_step=r.npy'], 'E669 tables: .*none may be global_step'),
    (['--table', 't=r.npy', '--ids', 't=i.npy', '--ids', 't=i.npy'], 'E669 --table: each table')])
def test_arguments_that_mean_nothing_are_refused(etpe, tmp_path, arguments, said):
    import re
    put(tmp_path / 'd', r=VALUES, i=np.arange(IDS))
    text = etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', *arguments, status=2)
    assert re.search(said, text), text
    assert not (tmp_path / 'c').exists()


@pytest.mark.parametrize('arguments, said', [
    (['--table', 'x=r.npy'], 'E669 --table x: it must name one table of --base; got none of that'),
    (['--table', 't=w.npy'], 'it must have the type and shape as in --base: float32 [11, 3]; got '
     'float32 [11, 4].'),
    (['--table', 't=r.npy', '--ids', 't=i.npy'], 'E667 table "scope/t": ids must be in [0, 11)')])
def test_what_does_not_fit_the_base_is_refused(etpe, tmp_path, arguments, said):
    base = save(tmp_path / 'm')
    put(tmp_path / 'd', r=VALUES, w=np.ones([IDS, 4], 'f4'), i=np.arange(IDS) + 1)
    assert said in etpe('checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', '--base', base,
                        *arguments, status=2)
    assert 'its step must be 7, as that of --base; got 8' in etpe(
        'checkpoint', 'import', tmp_path / 'd', tmp_path / 'c' / 'model.ckpt-8', '--base', base,
        '--table', 't=r.npy', status=2)
    pathlib.Path(manifest_path(base)).unlink()
    assert 'E669 --base: it must have a manifest' in etpe(
        'checkpoint', 'import', tmp_path / 'd', tmp_path / 'c', '--base', base, status=2)


def test_an_import_displaces_no_checkpoint(etpe, tmp_path, monkeypatch):
    save(tmp_path / 'm', 3)
    put(tmp_path / 'd', r=VALUES)
    command = ('checkpoint', 'import', tmp_path / 'd', tmp_path / 'm', '--table', 't=r.npy')
    before = sorted(os.listdir(tmp_path / 'm'))
    assert 'it must be missing, or hold no checkpoint; got model.ckpt-3.' in etpe(
        *command, status=2)
    assert sorted(os.listdir(tmp_path / 'm')) == before
    real = os.statvfs(tmp_path)
    monkeypatch.setattr(built.os, 'statvfs', lambda path: os.statvfs_result(
        [*real[:2], 1000, 1, *([0] * 6)]))
    assert 'the disk must have room for 132 bytes; got 0 bytes free' in etpe(
        *command[:3], tmp_path / 'c', *command[4:], status=2)


def test_integers_that_may_be_ids_are_not_passed_over(etpe, tmp_path):
    pyarrow = pytest.importorskip('pyarrow')
    from pyarrow import parquet
    parquet.write_table(pyarrow.table({'user_id': [1, 0], 'v': pyarrow.array(
        [[1.], [2.]], pyarrow.list_(pyarrow.float32()))}), tmp_path / 't.parquet')
    start = ('checkpoint', 'import', tmp_path)
    assert ('E669 table "t": somebody must say whether file t.parquet has the ids of its rows; '
            'got "user_id".') in etpe(*start, tmp_path / 'c', '--table', 't=t.parquet', status=2)
    etpe(*start, tmp_path / 'a', '--table', 't=t.parquet', '--ids', 't=t.parquet:user_id')
    etpe(*start, tmp_path / 'b', '--table', 't=t.parquet:v')
    assert table_of(tmp_path / 'a' / 'model.ckpt-0').tolist() == [[2.], [1.]]
    assert table_of(tmp_path / 'b' / 'model.ckpt-0').tolist() == [[1.], [2.]]
