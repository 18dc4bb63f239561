"""`TPUEmbeddingConfiguration` -> plan.

TF1 writes tables and features in the order of plans, with one batch; TF2 in any order, with names
and a shape of its own for each feature. Both give a plan that encodes to the same message but for
what has no effect, or an error: nothing else is lost silently.
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
    INFERENCE_OPTIMIZER, MODES, STRATEGIES, Config, HotIds, LowDimensionalPacking, Parameters,
    RateOfTag, decode_optimizer, plan_to_config)


def config_to_plan(config: Config) -> Plan:
    """Decodes a message into a plan.

    A message holds no combiners, initializers, initial slot values or rate functions; the plan
    has their defaults, and `RateOfTag` for the functions. Features without a name, or with that
    of another, are called `<table>:<position>`. Tables and features get the order of plans; what
    their order was, the names of features and whether narrow tables are packed is not kept.

    Raises:
      ConfigError: all reasons why the message is not a plan, fields that a plan cannot hold
        among them.
      UnsupportedError: if the only reason is an optimizer whose formula is not documented.
    """
    tables, features = _declared(config)
    is_sized = not _topology_problems(config)
    topology = (Topology(num_hosts=config.num_hosts,
                         cores_per_host=config.num_tensor_cores // config.num_hosts)
                if is_sized else Topology())
    run = {'batch_size': _batch_of(config) * topology.num_cores,
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
    """The tables and features of a message, as far as they can be read.

    What cannot, and `_problems_of` says, has a stand-in that `resolve` has nothing against: so
    all problems of a message come at once.
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
    batch = _batch_of(config)
    names = collections.Counter(descriptor.name for descriptor in config.feature_descriptor)
    for position, descriptor in enumerate(config.feature_descriptor if tables else ()):
        table = tables[descriptor.table_id if 0 <= descriptor.table_id < len(tables) else 0].name
        is_named = descriptor.name and names[descriptor.name] == 1  # TF2 takes a name twice.
        features.append(FeatureSpec(
            name=(_legal('feature', descriptor.name, position) if is_named
                  else f'{table[:900]}:{position:06}'), table=table,
            **_layout(descriptor.input_shape, batch)))
    return tables, features


def _batch_of(config: Config) -> int:
    """Samples per core and step; of features of TF2, whose own batches may differ, the most."""
    return max((feature.input_shape[0] for feature in config.feature_descriptor
                if feature.input_shape and feature.input_shape[0] > 0), default=1)


def _layout(shape: Sequence[int], batch: int) -> dict[str, Any]:
    """What a FeatureSpec says of an `input_shape`: nothing if it is illegal."""
    if min(shape, default=0) < 1:
        return {}
    if len(shape) <= 2 and shape[0] == batch:
        return {'max_sequence_length': shape[1] if len(shape) == 2 else 0}
    return {'output_shape': tuple(shape)}


def _legal(kind: str, name: str, position: int) -> str:
    """The name, or one for an object whose own is illegal."""
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
    """What is wrong with a message beyond what `resolve` finds."""
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
        # Here, not in `resolve`: its other problems would print the name as it is.
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
    """Raises unless the plan encodes to what counts of the message.

    Args:
      config: the message.
      plan: what came of it.
      names: in the plan, of the features in the order of the message.
    """
    want, again = _ordered(config, plan, names), plan_to_config(plan)
    if again.SerializeToString(deterministic=True) == want.SerializeToString(deterministic=True):
        return
    fields = [field.name for field in Config.DESCRIPTOR.fields
              if _bytes_of(want, field.name) != _bytes_of(again, field.name)]
    raise ConfigError(Problem(
        'E470', ', '.join(fields) or 'config', 'it must not hold what a plan cannot',
        'fields that TensorFlow 2.15 leaves empty' if fields else 'unknown fields'))


def _ordered(config: Config, plan: Plan, names: Sequence[str]) -> Config:
    """The message in the order of the plan, without what has no effect."""
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


def _bytes_of(config: Config, name: str) -> bytes:
    """One field of a message, alone, as bytes."""
    single = Config()
    single.CopyFrom(config)
    single.DiscardUnknownFields()
    for field in Config.DESCRIPTOR.fields:
        if field.name != name:
            single.ClearField(field.name)
    return single.SerializeToString(deterministic=True)
