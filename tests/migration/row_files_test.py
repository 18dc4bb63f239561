"""Files of rows from strangers: what is read of them, and what is refused and why."""

import os
import sys

import numpy as np
import pytest

from estimator_tpu_embedding.errors import CheckpointError
from estimator_tpu_embedding.migration import row_files
from estimator_tpu_embedding.migration.row_files import columns_of, require

ROWS = np.arange(14, dtype=np.float32).reshape(7, 2)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Reads three rows at once."""
    monkeypatch.setattr(row_files, 'step_of', lambda row_bytes: 3)


def read(column):
    """All rows of a column, and how many came at once."""
    parts = list(column.chunks())
    return np.concatenate(parts), [len(part) for part in parts]


def test_an_array_of_numpy_is_read_in_steps(tmp_path):
    np.save(tmp_path / 'r.npy', ROWS)
    np.save(tmp_path / 'i.npy', np.array([3, 1], '>i8'))
    column = columns_of(str(tmp_path), 'r.npy')['']
    assert (column.kind, column.shape) == ('float32', (7, 2))
    got, steps = read(column)
    np.testing.assert_array_equal(got, ROWS)
    assert steps == [3, 3, 1]
    ids, _ = read(columns_of(str(tmp_path), 'i.npy')[''])
    assert ids.tolist() == [3, 1] and ids.dtype == np.int64


@pytest.mark.parametrize('make, said', [
    (lambda path: np.save(path, np.array([{}, 1], object), allow_pickle=True),
     'Python objects in dtype'),
    (lambda path: np.save(path, np.asfortranarray(ROWS)), 'got columns in Fortran order'),
    (lambda path: cut(path, 1), 'length is greater than file size'),
    (lambda path: path.write_bytes(b''), 'E665 file r.npy: it must be readable'),
    (lambda path: path.write_bytes(b'\x93NUMPY\x01\0\xff\xff' + b'(' * 65535),
     'E665 file r.npy: it must be readable'),
    (lambda path: path.write_bytes(b'\x93NUMPY\x01\0\x09\0{\x0bFalse, '), 'multi-line statement'),
    (lambda path: path.mkdir(), 'a regular file that can be read; got a directory'),
    (lambda path: os.mkfifo(path), 'got a pipe, socket or device'),
    (lambda path: path.symlink_to('/dev/zero'), 'got a pipe, socket or device'),
    (lambda path: None, 'got No such file or directory')])
def test_a_file_that_is_no_plain_array_is_refused(tmp_path, make, said):
    make(tmp_path / 'r.npy')
    with pytest.raises(CheckpointError) as caught:
        columns_of(str(tmp_path), 'r.npy')
    assert said in str(caught.value) and caught.value.code == 'E665'


def cut(path, count):
    """Writes an array whose file lacks its last bytes."""
    np.save(path, ROWS)
    path.write_bytes(path.read_bytes()[:-count])


def test_a_file_that_becomes_shorter_while_it_is_read_is_noticed(tmp_path):
    np.save(tmp_path / 'r.npy', ROWS)
    column = columns_of(str(tmp_path), 'r.npy')['']
    cut(tmp_path / 'r.npy', 8)
    with pytest.raises(CheckpointError, match='E665 .*it became shorter while it was read'):
        read(column)


def test_lists_of_parquet_are_rows_if_all_have_one_length(tmp_path):
    pyarrow = pytest.importorskip('pyarrow')
    from pyarrow import parquet
    for name, lists in (('good', ROWS.tolist()), ('other', [[1.], [1., 2., 3.], [1., 2.]]),
                        ('hole', [[1., None]]), ('none', [[1., 2.], None])):
        parquet.write_table(pyarrow.table({
            'id': list(range(len(lists))), 'word': ['w'] * len(lists),
            'v': pyarrow.array(lists, pyarrow.list_(pyarrow.float32()))}),
            tmp_path / f'{name}.parquet', row_group_size=4)
    columns = columns_of(str(tmp_path), 'good.parquet')
    assert {name: one.kind for name, one in columns.items()} == {
        'id': 'int64', 'v': 'float32'} and columns['v'].shape == (7, 2)
    got, steps = read(columns['v'])
    np.testing.assert_array_equal(got, ROWS)
    assert max(steps) == 3
    for name, said in (('other', 'lists of different lengths'), ('hole', '1 empty cells'),
                       ('none', '1 empty cells')):
        with pytest.raises(CheckpointError, match=f'E665 .*{said}'):
            read(columns_of(str(tmp_path), f'{name}.parquet')['v'])
    (tmp_path / 'bad.parquet').write_bytes(b'PAR1' * 9)
    with pytest.raises(CheckpointError, match='E665 file bad.parquet: it must be readable'):
        columns_of(str(tmp_path), 'bad.parquet')


def test_a_header_of_safetensors_that_does_not_fit_its_file_is_refused(tmp_path):
    numpy = pytest.importorskip('safetensors.numpy')
    numpy.save_file({'v': ROWS, 'id': np.arange(7)}, tmp_path / 'good.safetensors')
    columns = columns_of(str(tmp_path), 'good.safetensors')
    assert {name: (one.kind, one.shape) for name, one in columns.items()} == {
        'id': ('int64', (7,)), 'v': ('float32', (7, 2))}
    got, steps = read(columns['v'])
    np.testing.assert_array_equal(got, ROWS)
    assert max(steps) == 3
    content = (tmp_path / 'good.safetensors').read_bytes()
    for bad in (content[:-8], content[:4], b'\xff' * 40):
        (tmp_path / 'bad.safetensors').write_bytes(bad)
        with pytest.raises(CheckpointError, match='E665 file bad.safetensors: it must be readable'):
            columns_of(str(tmp_path), 'bad.safetensors')
    (tmp_path / 'good.safetensors').write_bytes(content[:-8])
    with pytest.raises(CheckpointError, match='E665 file good.safetensors'):
        read(columns['v'])


@pytest.mark.parametrize('format, package', [
    ('parquet', 'pyarrow'), ('safetensors', 'safetensors')])
def test_without_a_package_the_error_says_what_to_install(tmp_path, monkeypatch, format, package):
    monkeypatch.setitem(sys.modules, package, None)
    for use in (lambda: columns_of(str(tmp_path), f'a.{format}'), lambda: require(format)):
        with pytest.raises(CheckpointError, match=f'E663 .{format}: .*pip install {package}'):
            use()
