#!/usr/bin/env python3
"""Writes `tests/golden/tf2_*`: shapes and configs of the TPUEmbedding of TensorFlow 2.15.

Run it in the virtual environment that `make_goldens.py` describes. Neither needs a TPU: methods
that run on any machine make the shapes and configs.
"""

import json
import pathlib
import sys
import types

import tensorflow.compat.v1 as tf
from google.protobuf import text_format

TESTS = pathlib.Path(__file__).resolve().parent.parent / 'tests'
sys.path.insert(0, str(TESTS))
from harness import tf2_configs, tf2_shapes  # noqa: E402

DIRECTORY = TESTS / 'golden'
api = tf.tpu.experimental.embedding


def embedding_of(length, output_shape):
    """A TPUEmbedding with one feature."""
    table = api.TableConfig(vocabulary_size=8, dim=2, name='t')
    return api.TPUEmbedding([api.FeatureConfig(
        table, max_sequence_length=length, output_shape=output_shape)], optimizer=None)


def outcome(call):
    """The shape that a call gives, or the class and the text of its error."""
    try:
        shape = call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return shape and shape.as_list()


def resolved(length, output_shape, kind, shape):
    """The output shape after `build` or a first `enqueue`."""
    embedding = embedding_of(length, output_shape)
    if kind == 'size':
        embedding._get_and_update_output_shapes_from_input(shape)
    elif kind == 'build':
        embedding._get_and_update_output_shapes_from_input([tf.TensorShape(shape)])
    else:
        with tf.Graph().as_default():
            shapes = embedding._get_input_shapes([tf2_shapes.tensor(kind, shape)], True, True)
        embedding._get_and_update_output_shapes_from_input(shapes)
        embedding._check_output_shapes(embedding._get_output_shapes_from_input_shapes(shapes))
    return embedding._output_shapes[0]


def checked(config, stored, incoming):
    """Returns the result of the check that every further `enqueue` makes."""
    embedding = embedding_of(*config)
    embedding._output_shapes = [tf.TensorShape(stored)]
    embedding._check_output_shapes([tf.TensorShape(incoming)])


def config_of(embedding, replicas, hosts):
    """The config of a TPUEmbedding as under a TPUStrategy of this size."""
    embedding._strategy = types.SimpleNamespace(
        num_replicas_in_sync=replicas, extended=types.SimpleNamespace(num_hosts=hosts))
    embedding._dynamic_learning_rates = []
    for table in embedding._table_config:
        rate = table.optimizer.learning_rate
        if callable(rate) and rate not in embedding._dynamic_learning_rates:
            embedding._dynamic_learning_rates.append(rate)
    return embedding._create_config_proto()


def main():
    """Writes all goldens."""
    shapes = {name: outcome(lambda: resolved(*case)) for name, *case in tf2_shapes.cases()}
    checks = [outcome(lambda: checked(*case)) for case in tf2_shapes.STORED]
    lines = [f'{json.dumps(name)}: {json.dumps(found)}' for name, found in shapes.items()]
    (DIRECTORY / 'tf2_shapes.json').write_text(
        '{"resolved": {\n' + ',\n'.join(lines) + '},\n"checked": [\n'
        + ',\n'.join(map(json.dumps, checks)) + ']}\n')
    for name, (config, optimizer, size) in tf2_configs.declarations(api).items():
        embedding = api.TPUEmbedding(config, optimizer, size.pipelined)
        embedding._output_shapes = [tf.TensorShape(shape) for shape in size.output_shapes]
        (DIRECTORY / 'tf2_configs' / f'{name}.pbtxt').write_text(
            text_format.MessageToString(config_of(embedding, size.num_cores, size.num_hosts)))


if __name__ == '__main__':
    main()
