import os
import pathlib
import random
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import forged
from harness.forged import entry, table
from harness.processes import run_python
from harness.wire import varint

from estimator_tpu_embedding.checkpoint import sstable
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.stored_rows import batches
from estimator_tpu_embedding.checkpoint.tensors import slice_key
from estimator_tpu_embedding.errors import CorruptCheckpointError


@pytest.fixture(scope='module')
def real(tmp_path_factory):
    """The prefix of a checkpoint that TensorFlow wrote, in two data files."""
    directory = tmp_path_factory.mktemp('real')
    random_numbers = np.random.default_rng(0)
    with tf.Graph().as_default(), tf.Session() as session:
        for name, shape, parts, axis in (
                ('scope/t', [300, 2], 3, 0), ('big', [100_000, 1], 2, 0), ('columns', [6, 4], 2, 1),
                ('vector', [7], 2, 0)):
            tf.get_variable(name, shape, partitioner=tf.fixed_size_partitioner(parts, axis=axis))
        for name, value in {
                'half': np.array([1, .1, 3e4], 'f2'), 'step': np.int64(5), 'flag': True,
                'complex': np.array([1j, 2]), 'long': np.arange(24).reshape(2, 3, 4),
                'empty': np.zeros([0, 3], 'f4'), 'strings': ['a', '', 'x' * 300]}.items():
            tf.Variable(value, name=name)
        tf.Variable(tf.cast(random_numbers.normal(size=[5, 2]), tf.bfloat16), name='brain')
        tf.Variable(np.zeros([4]), name='z' * 300)
        session.run(tf.global_variables_initializer())
        return tf.train.Saver(sharded=True).save(session, str(directory / 'model.ckpt'), 7)


def test_tensors_and_values_are_those_that_tensorflow_reads(real):
    reader, bundle = tf.train.load_checkpoint(real), Bundle.open(real)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    assert {name: (list(one.shape), one.dtype) for name, one in bundle.tensors.items()} == {
        name: (shape, types[name].as_datatype_enum) for name, shape in shapes.items()}
    for name in bundle.tensors.keys() - {'strings', 'columns'}:
        want = reader.get_tensor(name)
        got = bundle.read(name, 0, bundle.tensors[name].rows)
        np.testing.assert_array_equal(got.reshape(want.shape), want.astype(got.dtype))


def test_batches_are_all_rows_in_their_order(real):
    tensors = Bundle.open(real).tensors
    found = [rows.tolist() for rows in batches(tensors['scope/t'], 56)]  # 7 rows of 8 bytes.
    assert [rows[0] for rows in found] == list(range(0, 300, 7))
    assert sum(found, []) == list(range(300))
    assert list(batches(tensors['empty'])) == []
    assert [rows.tolist() for rows in batches(tensors['step'])] == [[0]]


@pytest.mark.parametrize('name, why', [('strings', 'string'), ('columns', 'slices of columns')])
def test_what_has_no_rows_of_numbers_is_not_read(real, name, why):
    with pytest.raises(CorruptCheckpointError, match=f'E613 .*"{name}" must be stored as rows of '
                       f'numbers to be read here; got {why}'):
        Bundle.open(real).read(name, 0, 1)


def test_c10_every_changed_byte_of_an_index_is_found(real):
    content = pathlib.Path(f'{real}.index').read_bytes()
    list(sstable.entries(content))
    for at in range(len(content)):
        for bit in (1, 128):
            changed = bytearray(content)
            changed[at] ^= bit
            with pytest.raises(sstable.Malformed):
                list(sstable.entries(bytes(changed)))
    for length in range(len(content)):
        with pytest.raises(sstable.Malformed):
            list(sstable.entries(content[:length]))


ROW = dict(dtype=1, shape=[2, 2], size=16)
SLICES = [[(0, 1), (0, 2)], [(1, 1), (0, 2)]]
HALF = entry(1, [1, 2], size=8)
HALVES = {slice_key(b't', SLICES[0]): HALF, slice_key(b't', SLICES[1]): entry(
    1, [1, 2], size=8, offset=8)}
HOSTILE = {
    'huge shape': ({b't': entry(1, [2**40, 2**40], size=16)}, 'float32 .* of 16 bytes'),
    'shape of unknown size': ({b't': b'\x08\x01\x12\x02\x18\x01'}, 'float32 .* of 0 bytes'),
    'negative dimension': ({b't': entry(1, [2**64 - 1], size=16)}, 'a dimension is negative'),
    'too many dimensions': ({b't': entry(1, [1] * 255, size=4)}, 'too many dimensions'),
    'too many strings': ({b't': entry(7, [2**40], size=16)}, 'string .* of 16 bytes'),
    'end past the end': ({b't': entry(**ROW, offset=1)}, 'its bytes 1 to 17 are not in'),
    'offset past the end': ({b't': entry(**ROW, offset=2**62)}, 'are not in'),
    'another size': ({b't': entry(1, [2, 2], size=12)}, 'of 12 bytes'),
    'another file': ({b't': entry(**ROW, shard=1)}, 'data file 1 of 1'),
    'two of the same bytes': ({b't': entry(**ROW), b'u': entry(1, [1], size=4, offset=12)},
                              '"u": it shares bytes'),
    'a name of bytes': ({b't\xff': entry(**ROW)}, 'it is no name'),
    'no message': ({b't': b'\xff'}, 'no whole message'),
    'no slice': ({b't': entry(1, [2, 2], slices=SLICES)}, 'a slice is missing'),
    'a slice twice': ({b't': entry(1, [2, 2], slices=[SLICES[0]] * 2), **HALVES}, 'named twice'),
    'a gap': ({b't': entry(1, [3, 2], slices=SLICES), **HALVES}, 'leave something out'),
    'a slice outside': ({b't': entry(1, [1, 2], slices=SLICES), **HALVES}, 'not one of the shape'),
    'a slice of other columns': ({b't': entry(1, [2, 3], slices=SLICES), **HALVES},
                                 'leave something out'),
    'a slice of a number': ({b't': entry(1, [], slices=SLICES), **HALVES}, 'not one of the shape'),
    'a slice of another type': ({b't': entry(3, [2, 2], slices=SLICES), **HALVES},
                                'another type'),
    'a slice of nobody': (HALVES, 'belong to no tensor'),
    'overlapping slices': ({b't': entry(1, [2, 2], slices=[SLICES[0], [(0, 2), (0, 2)]]), **{
        slice_key(b't', SLICES[0]): HALF, slice_key(b't', [(0, 2), (0, 2)]): entry(**ROW)}},
        'overlap')}


@pytest.mark.parametrize('entries, why', HOSTILE.values(), ids=HOSTILE)
def test_c25_an_entry_that_cannot_be_true_is_refused(tmp_path, entries, why):
    forged.write_index(tmp_path / 'm', entries, bytes(16))
    with pytest.raises(CorruptCheckpointError, match=f'E613 checkpoint m: .*{why}'):
        Bundle.open(str(tmp_path / 'm'))


@pytest.mark.parametrize('header, why', [
    (b'', '0 data files'), (b'\x08\x81\x80\x01', '16385 data files'), (b'\x08\x01\x10\x01', 'big-'),
    (b'\x08\x01\x1a\x02\x10\x02', 'newer version')])
def test_a_header_of_another_kind_is_refused(tmp_path, header, why):
    forged.write_index(tmp_path / 'm', {b't': entry(**ROW)}, bytes(16), header)
    with pytest.raises(CorruptCheckpointError, match=f'E613 .*{why}'):
        Bundle.open(str(tmp_path / 'm'))


@pytest.mark.parametrize('content, why', [
    (table([], [(b'b', forged.block([(b'b', b''), (b'a', b'')]))]), 'not behind the one before'),
    (table([(b'a', b''), (b'a', b'')]), 'not behind the one before'),
    (table([], [(b'a', forged.block([(b'b', b'')]))]), 'behind the last'),
    (table([], [(b'a', b'\0\0')]), 'too short'), (table([], [(b'a', b'\xff' * 8)]), 'restarts'),
    (table([], [(b'a', forged.block([]).replace(b'\1', b'\2', 1))]), 'restarts'),
    (table([], [(b'a', b'\0\1\1a' + forged.block([]))]), 'no whole entry'),
    (table([], [(b'a', b'\5\1\0a' + forged.block([]))]), 'no whole entry'),
    (table([], [(b'a', b'\0\1\0a' + b'\3' + forged.block([])[1:])]), 'not there'),
    (table([], [(b'a', b'\x80\0\1\0a' + forged.block([]))]), 'too long'),
    (b'', 'its end'), (bytes(100), 'its end')])
def test_c25_a_table_that_is_none_is_refused_though_its_checksums_hold(content, why):
    with pytest.raises(sstable.Malformed, match=why):
        list(sstable.entries(content))


@pytest.mark.parametrize('handles', [[(0, 14), (0, 14)], [(1, 13)], [(0, 15)], [(0, 99)]])
def test_c25_blocks_that_lie_elsewhere_or_are_named_twice_are_refused(handles):
    one, meta = forged.block([(b'a', b'')]), forged.block([])
    assert len(one) == 12
    index = forged.block([(bytes([97 + place]), bytes(handle))
                          for place, handle in enumerate(handles)])
    start = len(one) + 5
    footer = bytes([start, len(meta), start + len(meta) + 5, len(index)])
    with pytest.raises(sstable.Malformed, match='no block where one must be|does not hold|behind'):
        list(sstable.entries(forged.sealed(one) + forged.sealed(meta) + forged.sealed(index)
                             + footer.ljust(40, b'\0') + forged.MAGIC))


def test_c11_a_file_that_gets_shorter_while_it_is_read_is_no_end_of_input(tmp_path):
    bundle = Bundle.open(forged.write(tmp_path / 'm', {'t': np.zeros([4, 2])}))
    os.truncate(tmp_path / 'm.data-00000-of-00001', 63)
    assert bundle.read('t', 0, 3).shape == (3, 2)
    with pytest.raises(CorruptCheckpointError, match='E613 .*must stay as it is .*earlier end'):
        bundle.read('t', 0, 4)


def test_an_index_that_is_too_large_is_not_read(tmp_path):
    with open(tmp_path / 'm.index', 'wb') as file:
        file.truncate(2**28 + 1)
    with pytest.raises(CorruptCheckpointError, match='at most 268,435,456 bytes; got 268,435,457'):
        Bundle.open(str(tmp_path / 'm'))


OPEN = '''
import collections, resource, sys
from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.errors import CorruptCheckpointError
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
seen = collections.Counter()
for line in open(sys.argv[1]):
    try:
        Bundle.open(line.strip())
        seen['read'] += 1
    except CorruptCheckpointError as error:
        seen[error.code] += 1
        print(error)
assert "numpy" not in sys.modules
print(*seen.items())
'''


def mutated(random_numbers, content):
    """`content` with some damage that a checksum would hide, were it made anew."""
    content = bytearray(content)
    for _ in range(random_numbers.randint(1, 4)):
        at, length = random_numbers.randrange(len(content)), random_numbers.randint(1, 8)
        match random_numbers.randrange(4):
            case 0:
                content[at] = random_numbers.choice([0, 1, 127, 128, 255])
            case 1:
                del content[at:at + length]
            case 2:
                content[at:at] = content[at:at + length]
            case 3:
                content[at:at + length] = random_numbers.randbytes(length)
    return bytes(content)


def test_c25_hostile_indexes_take_neither_memory_nor_time(tmp_path):
    """In a process with 1 GiB: 10^6 keys, long keys out of few bytes, and 500 mutations."""
    seeded, prefixes = random.Random(7), []

    def add(content):
        prefixes.append(tmp_path / str(len(prefixes)))
        pathlib.Path(f'{prefixes[-1]}.index').write_bytes(content)
        pathlib.Path(f'{prefixes[-1]}.data-00000-of-00001').write_bytes(bytes(16))

    pairs = [(b'%07d' % number, HALF) for number in range(sstable.MAX_KEYS + 1)]
    add(table([(b'', forged.HEADER), *pairs]))
    # Each of 1,000 entries of six bytes has a key of a MiB.
    key = b'k' * 2**20
    grown = b'\0' + varint(len(key)) + b'\0' + key + b''.join(
        varint(len(key) + place) + b'\1\0a' for place in range(1000))
    add(table([], [(b'l', grown + forged.block([]))]))
    whole = forged.block(sorted({
        b'': forged.HEADER, b't': entry(1, [2, 2], slices=SLICES), **HALVES}.items()))
    for _ in range(500):
        add(table([], [(b'u', mutated(seeded, whole))]))
    add(table([], [(b'u', whole)]))
    (tmp_path / 'list').write_text('\n'.join(map(str, prefixes)))
    done = run_python('-c', OPEN, tmp_path / 'list')
    assert done.returncode == 0
    assert f'more than {sstable.MAX_KEYS:,} keys' in done.stdout
    *_, read, refused = re.findall(r'\d+', done.stdout.splitlines()[-1].replace('E613', ''))
    assert int(refused) + int(read) == 503
