"""Decodes a `TPUEmbeddingConfiguration` into a plan.

TF1 writes tables and features in the order of plans, with one batch size for all features. TF2
writes them in any order, with names, and with a shape for each feature. A message that is accepted
encodes to itself again, except for parts without effect. Any other message raises an error.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.names import name_problems
from ..core.optimizers import OPTIMIZERS, UNDOCUMENTED
from ..core.plan import Plan, problems_of, resolve
from ..core.rates import DynamicRate
from ..core.specs import FeatureSpec, TableSpec, Topology
from ..errors import ConfigError, Problem, UnsupportedError, shown
from . import quantization
from .codec import (
    INFERENCE_OPTIMIZER,
    MODES,
    STRATEGIES,
    Config,
    HotIds,
    LowDimensionalPacking,
    Parameters,
    RateOfTag,
    decode_optimizer,
    plan_to_config,
)


def config_to_plan(config: Config) -> Plan:
    """Decodes a message into a plan.

    A message holds no combiners, initializers, initial slot values or rate functions. The plan
    has their defaults, and `RateOfTag` for the functions. A feature is called
    `<table>:<position>` if it has no name, or if another feature has the same. Tables and
    features get the order of plans. The plan does not keep their former order, the names of
    features, and whether narrow tables are packed.

    Raises:
      ConfigError: with every reason why the message is not a plan, such as fields that a plan
        cannot hold.
      UnsupportedError: if the only reason is an optimizer whose formula is not documented.
    """
    tables, features = _declared(config)
    is_sized = not _topology_problems(config)
    topology = (Topology(num_hosts=config.num_hosts,
                         cores_per_host=config.num_tensor_cores // config.num_hosts)
                if is_sized else Topology())
    run = {'batch_size': batch_of(config) * topology.num_cores,
           'strategy': _name_of(config.sharding_strategy, STRATEGIES, 'div'),
           'mode': _name_of(config.mode, MODES, 'training')}
    problems = [*_problems_of(config), *problems_of(
        tables, features, topology, optimizer=None, **run)]  # type: ignore[arg-type]
    undocumented = list(_undocumented(config))
    if problems:
        raise ConfigError(*problems, *undocumented)
    if undocumented:
        raise UnsupportedError(*undocumented)
    plan = resolve(tables, features, topology, **run,  # type: ignore[arg-type]
                   pipelined=config.pipeline_execution_with_tensor_core,
                   profile_directory=config.profile_data_directory)
    _refuse_loss(config, plan, [feature.name for feature in features])
    return plan


def _declared(config: Config) -> tuple[list[TableSpec], list[FeatureSpec]]:
    """Returns the tables and features of a message, as far as they can be read.

    Each unreadable part gets a stand-in that `resolve` accepts, and `_problems_of` reports it.
    So the user sees all problems of a message at once.
    """
    tables = [
        TableSpec(name=_legal('table', descriptor.name, position),
                  vocabulary_size=descriptor.vocabulary_size,
                  dimension=descriptor.dimension, combiner='sum',
                  optimizer=(decode_optimizer(descriptor.optimization_parameters)
                             if descriptor.optimization_parameters.WhichOneof('parameters')
                             in OPTIMIZERS else INFERENCE_OPTIMIZER),
                  rate=_decode_rate(descriptor.optimization_parameters),
                  hot_id_replication=_are_hot_ids_replicated(descriptor.optimization_parameters),
                  quantization=quantization.decode(
                      descriptor.optimization_parameters.simulated_quantization))
        for position, descriptor in enumerate(config.table_descriptor)]
    features = []
    batch = batch_of(config)
    names = collections.Counter(descriptor.name for descriptor in config.feature_descriptor)
    for position, descriptor in enumerate(config.feature_descriptor if tables else ()):
        table = tables[descriptor.table_id if 0 <= descriptor.table_id < len(tables) else 0].name
        is_named = descriptor.name and names[descriptor.name] == 1  # In TF2 two may share it.
        features.append(FeatureSpec(
            name=(_legal('feature', descriptor.name, position) if is_named
                  else f'{table[:900]}:{position:06}'), table=table,
            **layout(descriptor.input_shape, batch)))
    return tables, features


def batch_of(config: Config) -> int:
    """Returns the samples per core and step.

    Features of TF2 may have batch sizes of their own. Then this is the largest.
    """
    return max((feature.input_shape[0] for feature in config.feature_descriptor
                if feature.input_shape and feature.input_shape[0] > 0), default=1)


def layout(shape: Sequence[int], batch: int) -> dict[str, Any]:
    """Returns the arguments of a FeatureSpec for an `input_shape`; none if it is illegal."""
    if min(shape, default=0) < 1:
        return {}
    if len(shape) <= 2 and shape[0] == batch:
        return {'max_sequence_length': shape[1] if len(shape) == 2 else 0}
    return {'output_shape': tuple(shape)}


def _legal(kind: str, name: str, position: int) -> str:
    """Returns the name, or a stand-in if it is illegal."""
    return f'{kind} {position}' if any(name_problems(kind, name)) else name


def _name_of(number: int, numbers: Mapping[str, int], otherwise: str) -> str:
    return next((name for name, one in numbers.items() if one == number), otherwise)


def _topology_problems(config: Config) -> list[Problem]:
    if config.num_hosts < 1 or config.num_tensor_cores < 1 or (
            config.num_tensor_cores % config.num_hosts):
        return [Problem(
            'E410', 'topology', 'num_hosts must be >= 1 and divide num_tensor_cores',
            f'num_hosts {config.num_hosts}, num_tensor_cores {config.num_tensor_cores}')]
    return []


def _problems_of(config: Config) -> list[Problem]:
    """Returns the problems of a message that `resolve` does not find."""
    problems = _topology_problems(config)
    if config.mode not in MODES.values():
        problems.append(Problem('E441', 'mode', 'it must be TRAINING or INFERENCE',
                                str(config.mode)))
    if config.sharding_strategy not in STRATEGIES.values():
        problems.append(Problem('E440', 'sharding_strategy', 'it must be DIV_DEFAULT or MOD',
                                str(config.sharding_strategy)))
    shapes = {tuple(feature.input_shape) for feature in config.feature_descriptor
              if min(feature.input_shape, default=0) < 1}
    if shapes:
        problems.append(Problem('E433', 'feature_descriptor', 'input_shape must have one '
                                'dimension or more, each >= 1', str(sorted(shapes)[:5])))
    for position, feature in enumerate(config.feature_descriptor):
        if not 0 <= feature.table_id < len(config.table_descriptor):
            problems.append(Problem(
                'E401', f'feature {shown(feature.name) or position}', 'table_id must be in '
                f'[0, {len(config.table_descriptor)})', str(feature.table_id)))
        if feature.name:
            problems += name_problems('feature', feature.name)
    for table in config.table_descriptor:
        # Checked here first: the other problems that `resolve` finds print the raw name.
        problems += name_problems('table', table.name)
        field = table.optimization_parameters.WhichOneof('parameters')
        if field not in OPTIMIZERS.keys() | UNDOCUMENTED:
            problems.append(Problem('E443', f'table "{shown(table.name)}"', 'the optimizer must '
                                    f'be one of {", ".join(sorted(OPTIMIZERS))}', str(field)))
        if table.optimization_parameters.learning_rate.WhichOneof('learning_rate') is None:
            problems.append(Problem('E421', f'table "{shown(table.name)}"', 'the learning rate '
                                    'must be constant or dynamic', 'none'))
    return problems


def _undocumented(config: Config) -> Iterator[Problem]:
    for table in config.table_descriptor:
        field = table.optimization_parameters.WhichOneof('parameters')
        if field in UNDOCUMENTED:
            yield Problem(
                'E918', f'table "{shown(table.name)}"', 'the formula of its optimizer must be '
                'documented, since nobody could check another', field,
                f'Train with one of {", ".join(sorted(OPTIMIZERS))}.')


def _decode_rate(parameters: Parameters) -> DynamicRate | None:
    if parameters.learning_rate.WhichOneof('learning_rate') == 'dynamic':
        return DynamicRate(function=RateOfTag(parameters.learning_rate.dynamic.tag))
    return None


def _are_hot_ids_replicated(parameters: Parameters) -> bool:
    return parameters.hot_id_replication_configuration.status == HotIds.ENABLED


def _refuse_loss(config: Config, plan: Plan, names: Sequence[str]) -> None:
    """Raises an error unless the plan encodes to the parts of the message that have an effect.

    Args:
      config: the message.
      plan: its decoded form.
      names: names in the plan of the features, in the order of the message.
    """
    want, again = _ordered(config, plan, names), plan_to_config(plan)
    if again.SerializeToString(deterministic=True) == want.SerializeToString(deterministic=True):
        return
    fields = [field.name for field in Config.DESCRIPTOR.fields
              if getattr(want, field.name) != getattr(again, field.name)]
    raise ConfigError(Problem(
        'E470', ', '.join(fields) or 'config', 'it must not hold what a plan cannot',
        'fields that TensorFlow 2.15 leaves empty' if fields else 'unknown fields'))


def _ordered(config: Config, plan: Plan, names: Sequence[str]) -> Config:
    """Returns the message in the order of the plan, without the parts that have no effect."""
    want = Config()
    want.CopyFrom(config)
    want.ClearField('table_descriptor')
    want.ClearField('feature_descriptor')
    for table in sorted(config.table_descriptor, key=lambda table: table.name):
        descriptor = want.table_descriptor.add()
        descriptor.CopyFrom(table)
        parameters = descriptor.optimization_parameters
        # It tells the hardware how to store the rows.
        if parameters.low_dimensional_packing_status == LowDimensionalPacking.ENABLED:
            parameters.ClearField('low_dimensional_packing_status')
    descriptors = dict(zip(names, config.feature_descriptor))
    for feature in plan.features:
        own = want.feature_descriptor.add()
        own.CopyFrom(descriptors[feature.name])
        own.ClearField('name')
        own.table_id = plan.table_index(feature.table)
    return want
