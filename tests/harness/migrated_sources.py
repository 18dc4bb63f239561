"""Runs the Python that `etpe migrate config` writes, and reads back what it declares."""

import ast
import types

from estimator_tpu_embedding.proto.codec import Accumulation, Config

WIDTH = 79


def run(text, **names):
    """The names that a source defines, with some names in place of its imports."""
    tree = ast.parse(text)
    if names:
        tree.body = [node for node in tree.body
                     if not isinstance(node, (ast.Import, ast.ImportFrom))]
    defined = dict(names)
    exec(compile(tree, 'migrated source', 'exec'), defined)
    return types.SimpleNamespace(**defined)


def config_of_tf2(text, hosts=1, cores=1):
    """The config that a source for TF2 makes, with a batch of one core if it states none."""
    import tensorflow as tf

    from estimator_tpu_embedding.midlevel import feature_configs, shapes
    made = run(text, tf=tf, tfrs=None)
    declared = feature_configs.declare(made.FEATURES, made.OPTIMIZER, needs_optimizer=False)
    found = shapes.resolve(declared, shapes.of_build(
        declared, None, made.BATCH_SIZE_PER_REPLICA or 1))
    return feature_configs.config_of(declared, found, num_hosts=hosts, num_cores=cores,
                                     pipelined='pipeline_execution' in text.rpartition('def ')[2])


def normal(config):
    """A config whose order of tables and features and whose numbers of rates tell nothing."""
    tables = sorted(config.table_descriptor, key=lambda table: table.name)
    places = {table.name: place for place, table in enumerate(tables)}
    found, tags = Config(), {}
    found.CopyFrom(config)
    del found.table_descriptor[:], found.feature_descriptor[:]
    for table in tables:
        own = found.table_descriptor.add()
        own.CopyFrom(table)
        parameters = own.optimization_parameters
        if parameters.learning_rate.WhichOneof('learning_rate') == 'dynamic':
            tag = parameters.learning_rate.dynamic.tag
            parameters.learning_rate.dynamic.tag = tags.setdefault(tag, len(tags))
        if parameters.WhichOneof('parameters') and not parameters.gradient_accumulation_status:
            parameters.gradient_accumulation_status = Accumulation.ENABLED
    features = []
    for feature in config.feature_descriptor:
        copy = Config.FeatureDescriptor()
        copy.CopyFrom(feature)
        copy.table_id = places[config.table_descriptor[feature.table_id].name]
        features.append(copy)
    found.feature_descriptor.extend(sorted(features, key=lambda one: (
        one.table_id, one.name, list(one.input_shape))))
    return found


def too_long(text):
    """The lines of a source that do not fit, though they are no names."""
    return [line for line in text.splitlines() if len(line) > WIDTH]
