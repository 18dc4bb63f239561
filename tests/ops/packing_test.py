import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.ops.packing import pack, unpack

KINDS = ['bfloat16', 'float16', 'float32', 'float64', 'int8', 'uint8', 'int16', 'uint16', 'int32',
         'uint32', 'int64', 'uint64', 'complex64', 'complex128', 'bool']


def there_and_back(values, *, is_static=True):
    """(what came out, the message) for arrays; shapes are known only if `is_static`."""
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = [tf.constant(value) if is_static else tf.placeholder_with_default(
            value, [None] * value.ndim) for value in values]
        message = pack(tensors)
        parts = unpack(message, tensors)
        assert [part.shape.as_list() for part in parts] == [
            each.shape.as_list() for each in tensors]
        return session.run([parts, message])


def assert_equal_bits(found, wanted):
    assert [(each.dtype, each.shape) for each in found] == [
        (each.dtype, each.shape) for each in wanted]
    assert [each.tobytes() for each in found] == [each.tobytes() for each in wanted]


@pytest.mark.parametrize('is_static', [True, False])
def test_tensors_of_every_type_come_out_bit_for_bit(is_static):
    generator = np.random.default_rng(0)
    values = [np.frombuffer(generator.bytes(6 * tf.as_dtype(kind).size),
                            tf.as_dtype(kind).as_numpy_dtype).reshape(2, 3)
              for kind in KINDS if kind != 'bool'] + [np.array([[True], [False]])]
    found, message = there_and_back(values, is_static=is_static)
    assert_equal_bits(found, values)
    assert message.dtype == np.uint8


@pytest.mark.parametrize('values, kind, length', [
    ([np.float32([1, 2]), np.float32(3)], np.float32, 3),
    ([np.float32([1, 2]), np.int64([3])], np.int32, 4),
    ([np.float32([1, 2]), np.array([True])], np.uint8, 9)])
def test_a_message_is_no_longer_than_its_tensors(values, kind, length):
    found, message = there_and_back(values)
    assert_equal_bits(found, values)
    assert (message.dtype, message.shape) == (kind, (length,))
