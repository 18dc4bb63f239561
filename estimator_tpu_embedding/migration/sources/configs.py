"""Reads configs, which TF1 and TF2 both write, into declarations.

A config holds all numbers of optimizers. It holds no combiner, initializer or function, and no name
of a feature if TF1 wrote it.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence

from ...core.names import name_problems
from ...core.optimizers import OPTIMIZERS
from ...core.rates import DynamicRate
from ...core.specs import FeatureSpec, TableSpec
from ...errors import ConfigError, Problem, counted, shown
from ...proto import quantization
from ...proto.codec import Config, HotIds, LowDimensionalPacking, RateOfTag, decode_optimizer
from ...proto.decoding import batch_of, layout
from .facts import JOB, LOST, NO_OPTIMIZER, Declaration, Feature, Note, Sizes, Table, place, some

_OF_COLUMNS = 'tbl_'
"""How the names of tables begin that feature columns make."""

_UNKNOWN = Note(
    JOB, 'A config holds no combiners, initializers, weights and first values of slots',
    "Here are 'mean' and the defaults. Copy the others from the program of the job.")


def declaration_of(config: Config, where: str, others: Sequence[Config] = ()) -> Declaration:
    """Returns what a config declares.

    Args:
      config: any config.
      where: its place, for the reader.
      others: those of the same job for evaluation or prediction.

    Raises:
      ConfigError: with every problem for which no API can declare it, such as a table of 0 rows.
    """
    batch = batch_of(config)
    names = _feature_names(config)
    tables = [_table(descriptor) for descriptor in config.table_descriptor]
    problems = list(_problems(config, tables))
    if problems:
        raise ConfigError(*problems)
    features = [
        Feature(declared_name=descriptor.name, spec=FeatureSpec(
            name=name, table=tables[descriptor.table_id].name,
            **layout(descriptor.input_shape, batch)))
        for name, descriptor in zip(names, config.feature_descriptor)]
    per_core = batch if features else config.batch_size_per_tensor_core or None
    if not features:
        features = [Feature(spec=FeatureSpec(name=name, table=table.name))
                    for name, table in zip(names, tables)]
    is_sized = config.num_tensor_cores > 0 and config.num_hosts > 0
    return Declaration(
        where=where, origin=_origin(config, features, tables), tables=tuple(tables),
        features=tuple(features),
        sizes=Sizes(per_core, config.num_hosts, config.num_tensor_cores) if is_sized
        else Sizes(per_core),
        pipelined=config.pipeline_execution_with_tensor_core,
        strategy='mod' if config.sharding_strategy == Config.MOD else 'div',
        profile_directory=config.profile_data_directory,
        notes=tuple(_notes(config, names, others)), config=config)


def _origin(config: Config, features: Sequence[Feature], tables: Sequence[Table]) -> str:
    """Returns `'TF2'` if the config has anything that only TF2 writes."""
    is_new = (any(one.declared_name or one.spec.output_shape is not None for one in features)
              or any(one.packed or one.spec.quantization is not None for one in tables)
              or not config.feature_descriptor)
    return 'TF2' if is_new else 'config'


def _table(descriptor: Config.TableDescriptor) -> Table:
    parameters = descriptor.optimization_parameters
    algorithm = parameters.WhichOneof('parameters') or ''
    if not algorithm and parameters.ByteSize():
        algorithm = 'one that is not known here'
    optimizer = decode_optimizer(parameters) if algorithm in OPTIMIZERS else None
    rate = None
    if parameters.learning_rate.WhichOneof('learning_rate') == 'dynamic':
        rate = DynamicRate(function=RateOfTag(parameters.learning_rate.dynamic.tag))
    return Table(
        algorithm=algorithm, is_whole=False,
        packed=parameters.low_dimensional_packing_status == LowDimensionalPacking.ENABLED,
        spec=TableSpec(
            name=descriptor.name, vocabulary_size=descriptor.vocabulary_size,
            dimension=descriptor.dimension, optimizer=optimizer, rate=rate,
            hot_id_replication=(parameters.hot_id_replication_configuration.status
                                == HotIds.ENABLED),
            quantization=quantization.decode(parameters.simulated_quantization)))


def _feature_names(config: Config) -> list[str]:
    """Returns a key for each feature: its own name, or one that is made from the table's.

    A config without features, as TensorFlow 2.3 writes it, gets a feature for each table.
    """
    tables = [descriptor.name for descriptor in config.table_descriptor]
    of_feature = [(one.name, tables[one.table_id] if 0 <= one.table_id < len(tables) else '')
                  for one in config.feature_descriptor] or [('', name) for name in tables]
    many = collections.Counter(table for name, table in of_feature if not name)
    seen: collections.Counter[str] = collections.Counter()
    declared = frozenset(name for name, _ in of_feature if name)
    found: dict[str, None] = {}
    for name, table in of_feature:
        avoided = frozenset() if name else declared
        if not name:
            seen[table] += 1
            name = table.removeprefix(_OF_COLUMNS) or table
            if many[table] > 1:
                name += f'_{seen[table]:0{len(str(many[table]))}}'
        while name in found or name in avoided:  # Features of TF2 may share a name.
            name += '_'
        found[name] = None
    return list(found)


def _problems(config: Config, tables: Sequence[Table]) -> Iterator[Problem]:
    if not tables:
        yield Problem('E402', 'config', 'at least one table is needed', 'none')
    for table in tables:
        yield from table.spec.problems()
    for name, count in collections.Counter(table.name for table in tables).items():
        if count > 1:
            yield Problem('E404', f'table "{shown(name)}"', 'the name of a table must be unique',
                          f'{count} of that name')
    for position, feature in enumerate(config.feature_descriptor):
        where = f'feature "{shown(feature.name) or position}"'
        if feature.name:
            yield from name_problems('feature', feature.name)
        if not 0 <= feature.table_id < len(tables):
            yield Problem('E401', where, f'table_id must be in [0, {len(tables)})',
                          str(feature.table_id))
        if min(feature.input_shape, default=0) < 1:
            yield Problem('E433', where, 'input_shape must have one dimension or more, each >= 1',
                          str(list(feature.input_shape)))


def _notes(config: Config, names: Sequence[str], others: Sequence[Config]) -> Iterator[Note]:
    yield _UNKNOWN
    unnamed = [name for name, one in zip(names, config.feature_descriptor) if not one.name]
    if unnamed:
        yield Note(JOB, f'The config has no names of {counted(len(unnamed), "feature")}', 'TF1 '
                   'writes none. Names here come from the tables. Put in the keys of the dict '
                   'that the dataset gives.')
    if config.mode == Config.INFERENCE:
        yield Note(JOB, 'The config is of a job that trains nothing: it has SGD with a rate of '
                   '1.0 for every table', 'Choose optimizers before you train.')
    if not config.feature_descriptor:
        yield Note(JOB, 'The config, of TensorFlow 2.3, does not list its features', 'Here is '
                   'one for each table, without sequences. Correct them.')
    raised = [one.name for one in config.table_descriptor
              if config.num_hosts > 1 and one.vocabulary_size == config.num_hosts]
    if raised:
        yield Note(JOB, f'The {counted(config.num_hosts, "row")} of {some(raised)} may be fewer '
                   'in the program: TensorFlow gives every host a row')
    for descriptor in config.table_descriptor:
        yield from _notes_of_table(descriptor)
    if config.HasField('spmd_sharding'):
        yield LOST(JOB, 'The config splits a replica over several cores (spmd_sharding), which '
                   'neither API declares here')
    known = Config()
    known.CopyFrom(config)
    known.DiscardUnknownFields()
    if known.ByteSize() != config.ByteSize():
        yield LOST(JOB, 'The config has fields that this version does not know',
                   'Look at the program that wrote it.')
    batch = batch_of(config)
    sizes = sorted({batch_of(other) for other in others if other.feature_descriptor} - {batch})
    if sizes:
        yield LOST(JOB, f'Evaluation or prediction has {", ".join(map(str, sizes))} samples per '
                   f'core and training {batch}, but TPUEmbedding of TF2 has one batch size',
                   'Give both the same size.')


def _notes_of_table(descriptor: Config.TableDescriptor) -> Iterator[Note]:
    where = place('table', descriptor.name)
    parameters = descriptor.optimization_parameters
    kept = parameters.hot_id_replication_configuration.status
    if kept not in (HotIds.UNSPECIFIED, HotIds.ENABLED, HotIds.DISABLED):
        yield LOST(where, f'the replication of hot ids has status {kept}, which no API sets')
    is_known = parameters.WhichOneof('parameters') is not None
    if not is_known and parameters.ByteSize():
        yield NO_OPTIMIZER(where, 'the config names no optimizer that this version knows',
                           'Take it from the program of the job.')
    elif is_known and parameters.learning_rate.WhichOneof('learning_rate') is None:
        yield Note(where, 'the config states no learning rate, so 0.0 stands here')
