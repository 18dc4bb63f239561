"""Reads what Python objects declare: specs of TPUEstimator, and declarations of TF2.

An object says more than a config: names, combiners, initializers and functions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ...core.optimizer_base import Optimizer
from ...core.plan import Plan
from ...core.rates import ConstantRate, DynamicRate
from ...core.specs import FeatureSpec, TableSpec
from ...errors import ConfigError, Problem, shown
from ...proto.codec import plan_to_config
from .facts import JOB, LOST, Declaration, Feature, Note, Sizes, Table, name_of, place, some


def prepare() -> None:
    """Puts the names in place that TensorFlow removed, before the user's module is imported.

    Raises:
      SetupError: if TensorFlow, or another package of the extra `cpu`, is missing.
    """
    from ...compat.install import install
    install()


def is_declaration(value: Any) -> bool:
    """Whether a value is an object that declares an embedding, and no function that returns one."""
    from ...midlevel import objects
    return objects.is_embedding(value)


def declaration_of(value: Any, where: str) -> Declaration | None:
    """Returns what an object declares, or `None` if it is no declaration.

    Args:
      value: any object that `compat.declarations` or `midlevel.objects` knows.
      where: its place, for the reader.

    Raises:
      ConfigError: with all problems of the declaration.
    """
    from ...compat import declarations
    if isinstance(value, Plan):
        return _of_plan(value, where, {one.name: one.weight_feature for one in value.features})
    try:
        found: Any = declarations.tf1_declaration(value)
    except (ValueError, TypeError) as error:
        raise ConfigError(Problem('E675', where, 'its arguments must be those of an '
                                  'EmbeddingConfigSpec', shown(error, 200))) from error
    if found is not None:
        declared = _of_spec(found, where) if declarations.is_spec(found) else _of_plan(
            found.plan, where, {name: one.weight_key
                                for name, one in found.feature_to_config_dict.items()})
    else:
        from ...midlevel import objects
        new = objects.declared_by(value)
        if new is None:
            return None
        declared = _of_tf2(new, where)
    if not declared.tables:
        raise ConfigError(Problem('E402', where, 'at least one table is needed', 'none'))
    problems = [problem for table in declared.tables for problem in table.spec.problems()]
    problems += [problem for one in declared.features for problem in one.spec.problems()]
    if problems:
        raise ConfigError(*problems)
    return declared


def _of_spec(spec: Any, where: str) -> Declaration:
    """Returns what an `EmbeddingConfigSpec` declares."""
    from ...compat import declarations
    tables, features = spec.to_specs()
    parameters = spec.optimization_parameters
    optimizer = None if parameters is None else parameters.to_optimizer()
    unsafe = declarations.unsafe_features(spec)
    multiplier = spec.experimental_gradient_multiplier_fn
    return Declaration(
        where=where, origin='TF1', tables=tuple(_trained(table, optimizer) for table in tables),
        features=tuple(_feature(one, one.name not in unsafe) for one in features),
        pipelined=bool(spec.pipeline_execution_with_tensor_core),
        strategy=spec.partition_strategy, profile_directory=spec.profile_data_directory or '',
        multiplier='' if multiplier is None else name_of(multiplier),
        notes=tuple(_notes_of_spec(spec, declarations.features_with_words(spec))))


def _of_plan(plan: Plan, where: str, weight_keys: Mapping[str, str | None]) -> Declaration:
    """Returns what a plan declares; `weight_keys` has that of each feature."""
    return Declaration(
        where=where, origin='TF1', tables=tuple(_trained(table, None) for table in plan.tables),
        features=tuple(_feature(dataclasses.replace(one, weight_feature=weight_keys[one.name]))
                       for one in plan.features),
        sizes=Sizes(plan.batch_size_per_core, plan.topology.num_hosts, plan.topology.num_cores),
        pipelined=plan.pipelined, strategy=plan.strategy,
        profile_directory=plan.profile_directory, config=plan_to_config(plan))


def _trained(spec: TableSpec, common: Optimizer | None) -> Table:
    """Returns a table with its optimizer, which takes the rate of the table."""
    optimizer = spec.optimizer or common
    if optimizer is not None and isinstance(spec.rate, DynamicRate):
        optimizer = dataclasses.replace(optimizer, learning_rate=0.0)
    elif optimizer is not None and isinstance(spec.rate, ConstantRate):
        optimizer = dataclasses.replace(optimizer, learning_rate=spec.rate.value)
    rate = spec.rate if isinstance(spec.rate, DynamicRate) else None
    return Table(spec=dataclasses.replace(spec, optimizer=optimizer, rate=rate),
                 algorithm='' if optimizer is None else optimizer.field)


def _feature(spec: FeatureSpec, validate: bool = True) -> Feature:
    return Feature(spec=spec, declared_name=spec.name, validate=validate)


def _notes_of_spec(spec: Any, with_words: list[str]) -> Iterator[Note]:
    if spec.clipping_limit is not None:
        yield Note(JOB, f'The spec has clipping_limit={spec.clipping_limit}, which has no effect',
                   'It is left out.')
    dense = [column.get_feature_key_name() for column in spec.tensor_core_feature_columns or []]
    if dense:
        yield LOST(JOB, f'The columns of {some(dense, "feature")} look up on the tensor core '
                   '(embedding_lookup_device)', 'Their tables are variables of the model. '
                   'TPUEmbeddingV0 is nearest to them.')
    if with_words:
        yield Note(JOB, f'The columns of {some(with_words, "feature")} map words to ids',
                   'A dict of features takes ids: map the words in the dataset.')


def _of_tf2(found: Any, where: str) -> Declaration:
    """Returns what `midlevel.objects` found."""
    from ...midlevel import declaration
    declared = found.declared
    tables = []
    for config in declared.tables:
        optimizer = config.optimizer
        spec = declaration.table_spec(config, config.name, optimizer)
        tables.append(Table(
            spec=spec, algorithm='' if spec.optimizer is None else spec.optimizer.field,
            packed=bool(optimizer is not None and optimizer.low_dimensional_packing_status)))
    return Declaration(
        where=where, origin='TF2', tables=tuple(tables), features=tuple(
            Feature(spec=FeatureSpec(
                name=name, table=config.table.name, output_shape=_shape_of(config),
                max_sequence_length=config.max_sequence_length),
                declared_name=config.name or '', validate=config.validate_weights_and_indices)
            for name, config in zip(declaration.feature_names(declared), declared.features)),
        pipelined=found.pipelined, sizes=_sizes_of(found.config), config=found.config,
        notes=tuple(_notes_of_tf2(declared)))


def _shape_of(config: Any) -> tuple[int, ...] | None:
    """Returns the output shape of a FeatureConfig if it is fully known."""
    return tuple(config.output_shape) if config.output_shape.is_fully_defined() else None


def _sizes_of(config: Any) -> Sizes:
    return Sizes() if config is None else Sizes(
        max(one.input_shape[0] for one in config.feature_descriptor), config.num_hosts,
        config.num_tensor_cores)


def _notes_of_tf2(declared: Any) -> Iterator[Note]:
    from ...midlevel import declaration, optimizers
    if any('/' in path for path in declared.paths):
        yield Note(JOB, 'The structure of feature_config is nested',
                   'Here it is one dict, whose keys are the paths of the features.')
    for config in declared.tables:
        where = place('table', config.name)
        if config.optimizer is not None and optimizers.has_own_slots(config.optimizer):
            yield LOST(where, 'its optimizer has a function that makes slots '
                       '(slot_variable_creation_fn), which cannot be written',
                       'Give it to the optimizer again.')
        if getattr(config, 'layout', None) is not None:
            yield LOST(where, 'its layout, for SparseCore, is left out')
        kind = getattr(getattr(config, 'dtype', None), 'name', 'float32')
        if kind != 'float32':
            yield LOST(where, f'its dtype {kind} is left out')
    for name, config in zip(declaration.feature_names(declared), declared.features):
        shape = config.output_shape
        if shape.rank is not None and not shape.is_fully_defined():
            yield LOST(place('feature', name), f'its output_shape is not fully known '
                       f'({shown(shape)}), and is left out')
