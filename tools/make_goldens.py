#!/usr/bin/env python3
"""Writes `tests/golden/`: what TensorFlow 2.15 makes of declarations, and names that it has.

Run it in a virtual environment of its own (Python <= 3.11), never in that of the project:

    pip install tensorflow-cpu==2.15.1 tensorflow-estimator==2.15.0
    python tools/make_goldens.py
"""

import functools
import pathlib
import sys

import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from tensorflow.compat.v1 import estimator as tf_estimator
from tensorflow.python.tpu import tpu_embedding

TOOLS = pathlib.Path(__file__).resolve().parent
TESTS = TOOLS.parent / 'tests'
sys.path.insert(0, str(TESTS))
from harness.names import tensorflow_names  # noqa: E402

DIRECTORY = TESTS / 'golden'
Table, Feature = tpu_embedding.TableConfig, tpu_embedding.FeatureConfig
TRAINING, INFERENCE = tpu_embedding.TRAINING, tpu_embedding.INFERENCE


def config(tables, features, batch_size, hosts, cores, mode=TRAINING, **kwargs):
    """The config proto of the original for one declaration."""
    device_config = tpu_embedding.DeviceConfig(
        num_hosts=hosts, num_cores=hosts * cores, job_name='/job:worker')
    proto = tpu_embedding.TPUEmbedding(
        tables, features, batch_size, mode, device_config=device_config, **kwargs).config_proto
    return renumbered(proto)


def renumbered(proto):
    """The proto with learning-rate tags in order of first appearance: the original's vary."""
    tags = {}
    for table in proto.table_descriptor:
        rate = table.optimization_parameters.learning_rate
        if rate.WhichOneof('learning_rate') == 'dynamic':
            rate.dynamic.tag = tags.setdefault(rate.dynamic.tag, len(tags))
    return proto


def census(**kwargs):
    """The job of tools/examples/census_tpu_job.py."""
    sizes = {'education_occupation_shared_embedding': (32, 8, 'sum'), 'workclass': (8, 4, 'mean'),
             'native_country': (16, 4, 'mean'), 'marital_status': (7, 4, 'mean'),
             'relationship': (6, 4, 'mean')}
    tables = {f'tbl_{name}': Table(rows, width, combiner=combiner)
              for name, (rows, width, combiner) in sizes.items()}
    features = {name: Feature(f'tbl_{name}') for name in list(sizes)[1:]}
    features.update({name: Feature('tbl_education_occupation_shared_embedding')
                     for name in ('education', 'occupation')})
    return config(tables, features, 512, **kwargs)


def several_optimizers():
    """Own optimizers, rates constant and dynamic, limits, sequences, more hosts than rows."""
    def shared(step):
        return 3.0

    def ramp(step):
        return 2.0

    tables = {
        'a': Table(1, 4, combiner='sum',
                   optimization_parameters=tpu_embedding.StochasticGradientDescentParameters(
                       0.5, clip_gradient_min=-1.0, clip_gradient_max=0.0)),
        'b': Table(10, 5, learning_rate=0.25),
        'c': Table(7, 4, learning_rate_fn=shared),
        'd': Table(7, 4, learning_rate_fn=ramp,
                   optimization_parameters=tpu_embedding.AdagradParameters(
                       0.1, weight_decay_factor=0.01, clip_weight_min=-2.0,
                       multiply_weight_decay_factor_by_learning_rate=True)),
        'e': Table(7, 4, learning_rate_fn=shared)}
    features = {'z': Feature('a'), 'y': Feature('b', max_sequence_length=3), 'x': Feature('b'),
                'w': Feature('c'), 'v': Feature('d'), 'u': Feature('e', max_sequence_length=2)}
    return config(tables, features, 8, hosts=2, cores=2, partition_strategy='mod',
                  pipeline_execution_with_tensor_core=True,
                  optimization_parameters=tpu_embedding.AdagradParameters(
                      0.1, use_gradient_accumulation=False))


def example_names():
    """The names that the census job uses, each looked up here, where they come from."""
    roots = {'tf': tf, 'tf_estimator': tf_estimator}
    names = tensorflow_names((TOOLS / 'examples' / 'census_tpu_job.py').read_text())
    for name in names:
        root, *attributes = name.split('.')
        functools.reduce(getattr, attributes, roots[root])
    return names


def main():
    """Writes all goldens."""
    adagrad = tpu_embedding.AdagradParameters(0.05)
    goldens = {
        'census_training_1x1': census(hosts=1, cores=1, optimization_parameters=adagrad),
        'census_training_2x4_mod': census(hosts=2, cores=4, optimization_parameters=adagrad,
                                          partition_strategy='mod'),
        'census_inference_4x2': census(hosts=4, cores=2, mode=INFERENCE),
        'several_optimizers_2x2': several_optimizers()}
    for name, proto in goldens.items():
        (DIRECTORY / 'configs' / f'{name}.pbtxt').write_text(text_format.MessageToString(proto))
    (DIRECTORY / 'example_names.txt').write_text('\n'.join(example_names()) + '\n')
    print(f'wrote {len(goldens) + 1} files')


if __name__ == '__main__':
    main()
