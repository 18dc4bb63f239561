"""Files of rows from strangers: what is read of them, and what is refused and why."""

import json
import os
import struct
import sys

import numpy as np
import pytest

from estimator_tpu_embedding.errors import CheckpointError
from estimator_tpu_embedding.migration.rows import files
from estimator_tpu_embedding.migration.rows.files import columns_of, require

ROWS = np.arange(14, dtype=np.float32).reshape(7, 2)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Reads three rows at once."""
    monkeypatch.setattr(files, 'step_of', lambda row_bytes: 3)


def read(column):
    """All rows of a column, and how many came at once."""
    parts = list(column.chunks())
    return np.concatenate(parts), [len(part) for part in parts]


def safetensors(path, header, content=b''):
    """Writes a file with a header that may be anything."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack('<Q', len(text)) + text + content)


def test_an_array_of_numpy_is_read_in_steps(tmp_path):
    np.save(tmp_path / 'r.npy', ROWS)
    np.save(tmp_path / 'i.npy', np.array([3, 1], '>i8'))
    column = columns_of(str(tmp_path), 'r.npy')['rows']
    assert (column.kind, column.shape) == ('float32', (7, 2))
    got, steps = read(column)
    np.testing.assert_array_equal(got, ROWS)
    assert steps == [3, 3, 1]
    ids, _ = read(columns_of(str(tmp_path), 'i.npy')['rows'])
    assert ids.tolist() == [3, 1] and ids.dtype == np.int64


@pytest.mark.parametrize('make, said', [
    (lambda path: np.save(path, np.array([{}, 1], object), allow_pickle=True),
     'Python objects in dtype'),
    (lambda path: np.save(path, np.asfortranarray(ROWS)), 'got columns in Fortran order'),
    (lambda path: np.save(path, np.array(['a'])), 'got <U1, which is no type of TensorFlow'),
    (lambda path: np.save(path, np.zeros(2, 'f4,i4')), 'which is no type of TensorFlow'),
    (lambda path: cut(path, 1), 'length is greater than file size'),
    (lambda path: cut(path, 100), 'E665 file r.npy: it must be readable'),
    (lambda path: path.write_bytes(b''), 'E665 file r.npy: it must be readable'),
    (lambda path: path.write_bytes(b'\x93NUMPY\x03\0\0\0\0\0'), 'Cannot parse header'),
    (lambda path: path.write_bytes(b'\x93NUMPY\x01\0\xff\xff' + b'(' * 65535),
     'E665 file r.npy: it must be readable'),
    (lambda path: path.write_bytes(b'\x93NUMPY\x01\0\x09\0{\x0bFalse, '), 'multi-line statement'),
    (lambda path: path.write_bytes(b'\x93NUMPY\x01\0\x40\0' + (
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2)}").ljust(64)),
     'negative dimensions'),
    (lambda path: path.mkdir(), 'a regular file that can be read; got a directory'),
    (lambda path: os.mkfifo(path), 'got a pipe, socket or device'),
    (lambda path: path.symlink_to('/dev/zero'), 'got a link, which is not followed here'),
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


@pytest.mark.parametrize('name', ['../r.npy', '/etc/r.npy', 'a/r.npy', 'r.txt', 'r\x1b.npy'])
def test_a_name_that_leads_elsewhere_or_has_another_suffix_is_refused(tmp_path, name):
    (tmp_path / 'd').mkdir()
    np.save(tmp_path / 'r.npy', ROWS)
    with pytest.raises(CheckpointError, match='E665 file .*its? .*name') as caught:
        columns_of(str(tmp_path / 'd'), name)
    assert str(caught.value).isprintable()


def entry(begin, end, dtype='F32', shape=(7, 2)):
    return {'dtype': dtype, 'shape': list(shape), 'data_offsets': [begin, end]}


@pytest.mark.parametrize('header, said', [
    ({'t': entry(0, 56)}, None),
    ({'t': entry(4, 60)}, 'at 4 to 60 of 56 bytes'), ({'t': entry(0, 52)}, 'of F32 (7, 2) at 0 to'),
    ({'t': entry(60, 4)}, 'at 60 to 4 of'), ({'t': entry(-56, 0)}, 'at -56 to 0'),
    ({'t': entry(0, 56, shape=[7, -2])}, 'of F32 (7, -2)'),
    ({'t': entry(0, 56, shape=[2**62, 4, 0])}, 'at 0 to 56'),
    ({'t': entry(0, 56, shape=[1] * 99)}, 'of F32 (1, 1'), ({'t': entry(0, '9')}, 'at 0 to 9'),
    ({'t': {}}, 'dtype'), ([], 'no JSON object'), (b'[' * 2**16, 'recursion'),
    (b'1' * 2**16, 'digits'), (b'{"t": 1, "t": 2}', 'a key occurs twice'),
    (b'[' + b'1,' * 2**21 + b'1]', 'more than 1,000,000 values'), (b'\xff' * 9, 'codec')])
def test_a_header_of_safetensors_may_say_anything(tmp_path, header, said):
    safetensors(tmp_path / 'r.safetensors', header, ROWS.tobytes())
    if said is None:
        got, _ = read(columns_of(str(tmp_path), 'r.safetensors')['t'])
        np.testing.assert_array_equal(got, ROWS)
        return
    with pytest.raises(CheckpointError, match='E665 file r.safetensors: it must be readable') as c:
        columns_of(str(tmp_path), 'r.safetensors')
    assert said in str(c.value)


def test_a_file_that_becomes_shorter_while_it_is_read_is_noticed(tmp_path):
    np.save(tmp_path / 'r.npy', ROWS)
    column = columns_of(str(tmp_path), 'r.npy')['rows']
    cut(tmp_path / 'r.npy', 8)
    with pytest.raises(CheckpointError, match='E665 .*it became shorter while it was read'):
        read(column)


def test_files_of_the_library_of_safetensors_are_read(tmp_path):
    library = pytest.importorskip('safetensors.numpy')
    library.save_file({'t': ROWS, 'i': np.arange(7)}, tmp_path / 'l.safetensors')
    columns = columns_of(str(tmp_path), 'l.safetensors')
    np.testing.assert_array_equal(read(columns['t'])[0], ROWS)
    assert read(columns['i'])[0].tolist() == list(range(7))


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
        'id': 'int64', 'word': 'string', 'v': 'float32'} and columns['v'].shape == (7, 2)
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


def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    for use in (lambda: columns_of(str(tmp_path), 'a.parquet'),
                lambda: require('parquet')):
        with pytest.raises(CheckpointError, match='E663 Parquet: .*pip install pyarrow'):
            use()
