"""Runs the Python that `etpe migrate config` writes, and reads back what it declares."""

import ast
import dataclasses
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


def any_configs():
    """A hypothesis strategy of configs: any numbers, sequences, names and rates."""
    from hypothesis import strategies as st

    from estimator_tpu_embedding.core.optimizers import OPTIMIZERS
    from estimator_tpu_embedding.core.plan import resolve
    from estimator_tpu_embedding.core.rates import DynamicRate
    from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
    from estimator_tpu_embedding.proto.codec import plan_to_config

    rates = [DynamicRate(function=abs), DynamicRate(function=round)]
    names = st.text(st.characters(exclude_categories=['C', 'Z']), min_size=1, max_size=9).filter(
        lambda name: not {'', '.', '..'} & set(name.split('/')))
    chosen = optimizers(st.sampled_from(sorted(OPTIMIZERS)))

    @st.composite
    def drawn(draw):
        common = draw(chosen)
        tables = [TableSpec(
            name=name, vocabulary_size=draw(st.integers(4, 99)), dimension=draw(st.integers(1, 9)),
            optimizer=draw(st.one_of(st.just(common), chosen)),
            rate=draw(st.sampled_from([None, None, *rates])),
            hot_id_replication=draw(st.booleans()))
            for name in draw(st.lists(names, min_size=1, max_size=4, unique=True))]
        features = [FeatureSpec(name=f'{place} {number}', table=table.name,
                                max_sequence_length=draw(st.integers(0, 2)))
                    for place, table in enumerate(tables)
                    for number in range(draw(st.integers(1, 2)))]
        return plan_to_config(resolve(
            tables, features, Topology(num_hosts=2, cores_per_host=2), batch_size=12,
            strategy=draw(st.sampled_from(['div', 'mod'])), pipelined=draw(st.booleans())))

    return drawn()


def optimizers(fields):
    """A hypothesis strategy of legal optimizers of the core.

    Args:
      fields: a strategy of names of algorithms.
    """
    from hypothesis import strategies as st

    from estimator_tpu_embedding.core.optimizers import OPTIMIZERS, Bounds

    def number(**limits):
        return st.floats(limits.get('at_least', limits.get('above', -8)),
                         limits.get('at_most', limits.get('below', 8)), width=32)

    bounds = st.tuples(*[st.one_of(st.none(), number())] * 2).map(
        lambda pair: Bounds(lower=pair[0], upper=pair[1]))

    def of(field):
        kind = OPTIMIZERS[field]
        own = {one.name: number(**one.metadata['bounds']) if 'bounds' in one.metadata
               else st.booleans() for one in dataclasses.fields(kind)
               if 'bounds' in one.metadata or one.name.startswith(('use_', 'multiply_', 'allow_'))}
        tail = {'clip_weights': bounds, 'clip_gradients': bounds, 'accumulate': st.booleans(),
                'decay': st.sampled_from([None, .25, .1]), 'decay_times_rate': st.booleans()}
        return st.builds(kind, learning_rate=number(at_least=0), **own, **tail)

    return fields.flatmap(of).filter(lambda one: not list(one.problems('t')) and not (
        one.decay_times_rate and one.decay is None))
