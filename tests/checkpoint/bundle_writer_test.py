"""What the writer writes is what TensorFlow writes, byte for byte, and the reader finds it."""

import pathlib

import ml_dtypes
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.bundle_writer import BundleWriter
from estimator_tpu_embedding.checkpoint.integrity import check_crcs

KINDS = ['bool', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64',
         'float16', 'float32', 'float64', 'complex64', 'complex128', ml_dtypes.bfloat16,
         ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
NAMES = st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\0'), min_size=1)


def encoded(name):
    return name.encode(errors='surrogateescape')


def written(prefix, tensors):
    """Writes arrays, or lists of arrays for slices, by name; returns the prefix."""
    with BundleWriter(str(prefix)) as out:
        for name, value in sorted(tensors.items(), key=lambda one: encoded(one[0])):
            slices = value if isinstance(value, list) else [np.asarray(value)]
            kind = tf.as_dtype(slices[0].dtype).as_datatype_enum
            rows = [len(one) for one in slices] if isinstance(value, list) else []
            shape = (sum(rows), *slices[0].shape[1:]) if rows else slices[0].shape
            for part, content in zip(out.rows(name, kind, shape, rows), slices, strict=True):
                part.append(content.tobytes())
        out.finish()
    return str(prefix)


def written_by_tensorflow(prefix, tensors):
    """The same by `SaveV2`."""
    names, values, specs = [], [], []
    for name, value in sorted(tensors.items(), key=lambda one: encoded(one[0])):
        slices = value if isinstance(value, list) else [np.asarray(value)]
        first, total = 0, sum(len(one) for one in slices) if isinstance(value, list) else 0
        for one in slices:
            shape = ' '.join(map(str, (total, *one.shape[1:])))
            rest = ''.join(f':0,{size}' for size in one.shape[1:])
            names.append(name)
            values.append(one)
            specs.append(f'{shape} {first},{len(one)}{rest}' if total else '')
            first += len(one) if total else 0
    with tf.Graph().as_default(), tf.Session() as session:
        if len(values) > 100:  # They are all alike; else TensorFlow takes seconds.
            values[1:-3] = [tf.constant(values[0])] * (len(values) - 4)
        session.run(tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, tensors=values,
                                      shape_and_slices=specs))
    return str(prefix)


def require_same_files(one, other):
    for suffix in 'index', 'data-00000-of-00001':
        assert pathlib.Path(f'{one}.{suffix}').read_bytes() == (
            pathlib.Path(f'{other}.{suffix}').read_bytes()), suffix


def require_readable(prefix, tensors):
    """The reader finds the values, types and shapes, and all checksums hold."""
    bundle = Bundle.open(prefix)
    assert bundle.tensors.keys() == tensors.keys()
    for name, value in tensors.items():
        want = np.concatenate(value) if isinstance(value, list) else np.asarray(value)
        tensor = bundle.tensors[name]
        assert tensor.shape == want.shape and tensor.dtype == (
            tf.as_dtype(want.dtype).as_datatype_enum)
        assert bundle.read_bytes(name, 0, tensor.rows).tobytes() == want.tobytes()
    assert check_crcs(bundle) == []


@st.composite
def arrays(draw):
    """A tensor of any type and shape, or its slices."""
    kind = np.dtype(draw(st.sampled_from(KINDS)))
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    pieces = draw(st.lists(st.integers(1, 130), max_size=4)) if shape and 0 not in shape else []

    def array(*shape):
        size = int(np.prod(shape)) * kind.itemsize
        content = draw(st.binary(min_size=size, max_size=size)) if size < 64 else (
            np.random.default_rng(draw(st.integers(0, 99))).bytes(size))
        if kind == np.dtype(bool):
            content = bytes(one & 1 for one in content)
        made = np.frombuffer(content, kind).reshape(shape).copy()
        # TensorFlow may give a NaN other bits before it saves it.
        with np.errstate(invalid='ignore'):
            made[made != made] = 1
        return made

    return [array(rows, *shape[1:]) for rows in pieces] if pieces else array(*shape)


@settings(max_examples=15, deadline=None, database=None)
@given(tensors=st.dictionaries(NAMES, arrays(), min_size=1, max_size=6))
def test_any_tensors_have_the_bytes_that_tensorflow_writes(tensors, tmp_path_factory):
    folder = tmp_path_factory.mktemp('any')
    ours = written(folder / 'ours', tensors)
    require_same_files(ours, written_by_tensorflow(folder / 'theirs', tensors))
    require_readable(ours, tensors)


def test_an_index_of_many_blocks_has_the_bytes_that_tensorflow_writes(tmp_path):
    """Of about a MB, while a block has 256 KiB; names share beginnings of all lengths."""
    tensors = {f'scope/{number * 7919 % 6000}{chr(97 + number % 26) * (number % 300)}':
               np.float32(7) for number in range(6000)}
    tensors['t'] = [np.ones([4, 2], np.float32), np.zeros([3, 2], np.float32)]
    tensors['t\U0010ffff\U0010ffff'] = np.int64(5)
    ours = written(tmp_path / 'ours', tensors)
    require_same_files(ours, written_by_tensorflow(tmp_path / 'theirs', tensors))
    assert pathlib.Path(f'{ours}.index').stat().st_size > 3 * 2**18
    assert Bundle.open(ours).read('t\U0010ffff\U0010ffff', 0, 1) == [5]


def test_names_of_bytes_that_are_no_text_are_those_that_tensorflow_reads(tmp_path):
    name = b'caf\xe9/\xfe'.decode(errors='surrogateescape')
    prefix = written(tmp_path / 'm', {name: np.arange(3)})
    assert Bundle.open(prefix).read(name, 0, 3).tolist() == [0, 1, 2]
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.raw_ops.RestoreV2(
            prefix=prefix, tensor_names=[b'caf\xe9/\xfe'], shape_and_slices=[''],
            dtypes=[tf.int64]))
    assert found[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize('content', [b'', b'graph', bytes(range(256)) * 300])
def test_a_text_has_the_bytes_that_tensorflow_writes(content, tmp_path):
    with BundleWriter(str(tmp_path / 'ours')) as out:
        out.text('graph', content)
        out.finish()
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.raw_ops.SaveV2(
            prefix=str(tmp_path / 'theirs'), tensor_names=['graph'], shape_and_slices=[''],
            tensors=[tf.constant(content)]))
    require_same_files(tmp_path / 'ours', tmp_path / 'theirs')
    assert Bundle.open(str(tmp_path / 'ours')).read_text('graph') == content
