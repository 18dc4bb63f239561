import pathlib
import tracemalloc

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import forged
from harness.checkpoints import flip
from harness.forged import entry

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.integrity import check_crcs, check_files, scan
from estimator_tpu_embedding.checkpoint.manifest import StoredFile
from estimator_tpu_embedding.errors import CorruptCheckpointError

DATA = 'm-7.data-00000-of-00001'
NAN, INF = float('nan'), float('inf')


@pytest.fixture(scope='module')
def real(tmp_path_factory):
    """The prefix of a small checkpoint of all kinds of tensors that TensorFlow wrote."""
    directory = tmp_path_factory.mktemp('real')
    with tf.Graph().as_default(), tf.Session() as session:
        for name, axis in (('t', 0), ('columns', 1)):
            tf.get_variable(name, [6, 4], partitioner=tf.fixed_size_partitioner(2, axis=axis))
        for name, value in {'half': np.array([1, .1], 'f2'), 'step': np.int64(5), 'flag': True,
                            'strings': [['a', ''], ['b' * 130, 'ü']]}.items():
            tf.Variable(value, name=name)
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(directory / 'm'), 7)


@pytest.fixture
def copy(real, tmp_path):
    """The prefix of a copy of it."""
    for path in pathlib.Path(real).parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return str(tmp_path / 'm-7')


def test_c09_c11_every_damage_in_a_data_file_is_found(copy):
    """Each byte changed, each length cut: by the checksums, and by the manifest."""
    path, files = pathlib.Path(copy).parent / DATA, scan(Bundle.open(copy)).files
    content = path.read_bytes()
    assert check_crcs(Bundle.open(copy)) == [] and check_files(copy, files, 'sha256')
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 128]) + content[at + 1:])
        with pytest.raises(CorruptCheckpointError, match=f'E613 .*{DATA}.*; got tensor "'):
            check_crcs(Bundle.open(copy))
        with pytest.raises(CorruptCheckpointError, match=f'E618 .*{DATA}.*damaged is tensor "'):
            check_files(copy, files, 'sha256')
        path.write_bytes(content[:at])
        with pytest.raises(CorruptCheckpointError, match='E613 checkpoint m-7: .*are not in'):
            check_crcs(Bundle.open(copy))
        with pytest.raises(CorruptCheckpointError, match=f'E618 .*{DATA}.*{at} bytes, not'):
            check_files(copy, files, 'size')


def test_what_cannot_be_checked_is_told(tmp_path):
    forged.write_index(tmp_path / 'm', {
        b'v': entry(21, [1], size=9), b'w': entry(99, [], size=1, offset=9)}, bytes(10))
    assert check_crcs(Bundle.open(str(tmp_path / 'm'))) == ['v', 'w']
    assert scan(Bundle.open(str(tmp_path / 'm'))).nonfinite == {}


def test_checksums_stand_for_the_hash_of_data_and_not_for_that_of_an_index(copy):
    files = scan(Bundle.open(copy)).files
    files[DATA] = StoredFile(size=files[DATA].size, sha256='0' * 64)
    check_files(copy, files, 'crc32c')
    flip(pathlib.Path(copy).parent / DATA, 0)
    with pytest.raises(CorruptCheckpointError, match='those that were written; got tensor'):
        check_files(copy, files, 'crc32c')
    files['m-7.index'] = StoredFile(size=files['m-7.index'].size, sha256='0' * 64)
    with pytest.raises(CorruptCheckpointError, match='m-7.index must be as the manifest says'):
        check_files(copy, files, 'crc32c')


def bad_at(place, value, dtype='f4', shape=(3, 2)):
    """Ones, but for one."""
    array = np.ones(shape, dtype)
    array.flat[place] = value
    return array


@pytest.mark.parametrize('dtype', ['f2', 'f4', 'f8', 'c8', 'c16'])
@pytest.mark.parametrize('value', [NAN, INF, -INF])
def test_c32_numbers_that_are_not_finite_are_found_in_every_type(tmp_path, dtype, value):
    prefix = forged.write(tmp_path / 'm', {
        'last': [np.ones([3, 2], dtype), bad_at(-1, value, dtype)],
        'scalar': np.array(value, dtype), 'fine': np.full([5], np.finfo(dtype).max, dtype),
        'tiny': np.full([5], np.finfo(dtype).smallest_subnormal, dtype)})
    assert scan(Bundle.open(prefix)).nonfinite == {'last': 1, 'scalar': 1}


@pytest.mark.parametrize('dtype, bits', [
    (14, 0x7fc0), (14, 0xff80), (19, 0x7c01), (24, 0x7c), (25, 0xff)])
def test_c32_they_are_found_in_types_that_numpy_lacks(tmp_path, dtype, bits):
    size = 2 if dtype < 20 else 1
    for value, want in ((bits, {'t': 1}), (bits & ~(1 << 2 if size == 1 else 1 << 10), {})):
        forged.write_index(tmp_path / 'm', {b't': entry(dtype, [2, 1], size=2 * size)},
                           bytes(size) + value.to_bytes(size, 'little'))
        assert scan(Bundle.open(str(tmp_path / 'm'))).nonfinite == want


def test_c32_a_row_counts_once_and_numbers_of_a_vector_each(tmp_path):
    prefix = forged.write(tmp_path / 'm', {
        'rows': np.array([[NAN, INF], [1, 2], [-INF, 3]]), 'vector': np.array([NAN, 1, INF]),
        # A row of a MiB is read in two chunks, and has one of them in each.
        'wide': np.pad(bad_at(0, NAN, 'f4', [1, 2**18]), [[1, 0], [0, 0]]) + bad_at(
            -1, INF, 'f4', [2, 2**18]),
        'integers': np.array([-1, 2**31 - 1], 'i4'), 'empty': np.zeros([0, 2])})
    assert scan(Bundle.open(prefix)).nonfinite == {'rows': 2, 'vector': 2, 'wide': 1}


def test_large_tensors_take_little_memory(tmp_path):
    """120 MB, of which nothing is on the disk."""
    size = 30_000_000
    forged.write_index(tmp_path / 'm', {b't': entry(1, [size // 10, 10], size=4 * size)})
    path = tmp_path / 'm.data-00000-of-00001'
    with open(path, 'r+b') as file:
        file.truncate(4 * size)
        file.seek(4 * (size - 1))
        file.write(np.float32(INF).tobytes())
    tracemalloc.start()
    assert scan(Bundle.open(str(tmp_path / 'm'))).nonfinite == {'t': 1}
    with pytest.raises(CorruptCheckpointError, match='got tensor "t"'):
        check_crcs(Bundle.open(str(tmp_path / 'm')))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6
