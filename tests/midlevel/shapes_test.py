import json
import pathlib

import pytest
import tensorflow as tf
from harness import tf2_shapes

from estimator_tpu_embedding.errors import EteError, InputShapeError
from estimator_tpu_embedding.midlevel import feature_configs, shapes

api = tf.tpu.experimental.embedding
GOLDEN = json.loads((pathlib.Path(__file__).resolve().parent.parent / 'golden' /
                     'tf2_shapes.json').read_text())


def declared_of(*configs):
    table = api.TableConfig(vocabulary_size=8, dim=2, name='t')
    return feature_configs.declare([
        api.FeatureConfig(table, max_sequence_length=length, output_shape=output_shape)
        for length, output_shape in configs], None, needs_optimizer=False)


def outcome(call):
    try:
        shape = call()
    except EteError as error:
        return [error]
    return shape and list(shape)


def resolved(length, output_shape, kind, shape):
    declared = declared_of((length, output_shape))
    if kind == 'size':
        incoming = shapes.of_build(declared, None, shape)
        assert shapes.of_build(declared, shape, None) == incoming
    elif kind == 'build':
        incoming = shapes.of_build(declared, [tf.TensorShape(shape)], None)
    else:
        with tf.Graph().as_default():
            incoming = shapes.of_inputs(declared, [tf2_shapes.tensor(kind, shape)])
    found = shapes.resolve(declared, incoming)
    shapes.check(declared, map(tf.TensorShape, found), incoming)
    return found[0]


def assert_same(name, found, expected):
    if expected and isinstance(expected[0], str):
        kind, text = expected
        assert kind == 'ValueError' and isinstance(found[0], ValueError), name
        assert text.rstrip('.') in str(found[0]), name
    else:
        assert found == expected, name


def test_shapes_and_errors_are_those_of_the_original():
    cases = list(tf2_shapes.cases())
    assert {name for name, *_ in cases} == GOLDEN['resolved'].keys()
    for name, *case in cases:
        assert_same(name, outcome(lambda: resolved(*case)), GOLDEN['resolved'][name])
    for (config, stored, incoming), expected in zip(tf2_shapes.STORED, GOLDEN['checked']):
        assert_same(stored, outcome(lambda: shapes.check(
            declared_of(config), [tf.TensorShape(stored)], [tf.TensorShape(incoming)])), expected)


def codes_of(call):
    with pytest.raises(InputShapeError) as caught:
        call()
    return [problem.code for problem in caught.value.problems]


def test_all_features_that_are_wrong_are_named():
    declared = declared_of((0, None), (0, [3]), (0, [None]), (0, [0, 2]))
    with tf.Graph().as_default():
        values = [tf2_shapes.tensor('dense', [8, 2]), 'words', tf2_shapes.tensor('dense', []),
                  tf.raw_ops.Placeholder(dtype=tf.int64)]
        assert codes_of(lambda: shapes.of_inputs(declared, values)) == [
            'E532', 'E510', 'E532', 'E532']
    incoming = [tf.TensorShape([8]), tf.TensorShape([4]), tf.TensorShape([3]),
                tf.TensorShape([3])]
    assert codes_of(lambda: shapes.resolve(declared, incoming)) == ['E534']
    assert codes_of(lambda: shapes.resolve(declared, None)) == ['E533', 'E533', 'E533']


def test_build_takes_a_shape_for_each_feature_or_one_size_or_nothing():
    declared = declared_of((0, None), (3, None))
    assert shapes.of_build(declared, None, None) is None
    assert [shape.as_list() for shape in shapes.of_build(declared, 5, 7)] == [[5], [5, 3]]
    assert [shape.as_list() for shape in shapes.of_build(
        declared, (tf.TensorShape([4, 2]), tf.TensorShape([4, 6])), None)] == [[4], [4, 3]]
    for wrong in ([8, 5], [tf.TensorShape([8])], {'a': [8, 5]}):
        assert codes_of(lambda: shapes.of_build(declared, wrong, None)) == ['E536']
