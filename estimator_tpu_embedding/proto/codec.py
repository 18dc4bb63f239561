"""Encodes a plan as `TPUEmbeddingConfiguration`, and decodes such a message into a plan.

Equal declarations give the bytes that TF 2.15 writes in TF1. So the fields that TF 2.15 leaves
empty stay empty: feature names, `num_features` and `batch_size_per_tensor_core`.

TF1 writes tables and features in the order of plans, with one batch size for all features. TF2
writes them in any order, with names, and with a shape for each feature. A message that is accepted
encodes to itself again, except for parts without effect. Any other message raises an error.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.learning_rates import ConstantRate, DynamicRate, rate_tags
from ..core.names import name_problems
from ..core.optimizers import OPTIMIZERS, UNDOCUMENTED, Bounds, Optimizer
from ..core.plan import Plan, problems_of, resolve
from ..core.specs import FeatureSpec, Quantization, TableSpec, Topology
from ..errors import ConfigError, Problem, UnsupportedError, shown
from . import tpu_embedding_configuration_pb2 as config_pb2

Config = config_pb2.TPUEmbeddingConfiguration
Parameters = config_pb2.OptimizationParameters
Accumulation = config_pb2.GradientAccumulationStatus
LowDimensionalPacking = config_pb2.LowDimensionalPackingStatus
HotIds = config_pb2.HotIdReplicationConfiguration
MODES = {'inference': Config.INFERENCE, 'training': Config.TRAINING}
STRATEGIES = {'div': Config.DIV_DEFAULT, 'mod': Config.MOD}
INFERENCE_OPTIMIZER = OPTIMIZERS['stochastic_gradient_descent'](learning_rate=1.0)
"""The optimizer that the original writes for tables that are not trained."""


@dataclasses.dataclass(frozen=True, slots=True)
class RateOfTag:
    """Stands for the learning-rate function of a decoded plan, which the message does not hold."""

    tag: int

    def __call__(self, step: Any) -> Any:
        """Raises the error that says so."""
        raise ConfigError(Problem('E424', f'learning rate {self.tag}', 'a decoded config knows '
                                  'only the tag of this rate, not its function'))


def plan_to_config(plan: Plan) -> Config:
    """Encodes a plan, with tables and features in its order.

    As in the original, `vocabulary_size` is raised to the number of hosts, because the hardware
    wants a row on every host.
    """
    config = Config(
        mode=MODES[plan.mode], num_hosts=plan.topology.num_hosts,
        num_tensor_cores=plan.topology.num_cores,
        sharding_strategy=STRATEGIES[plan.strategy],
        pipeline_execution_with_tensor_core=plan.pipelined,
        profile_data_directory=plan.profile_directory)
    tables = [table if table.optimizer is not None
              else dataclasses.replace(table, optimizer=INFERENCE_OPTIMIZER)
              for table in plan.tables]
    encode_tables(tables, config)
    for feature in plan.features:
        config.feature_descriptor.add(table_id=plan.table_index(feature.table),
                                      input_shape=plan.output_shape(feature)[:-1])
    return config


def encode_tables(tables: Sequence[TableSpec], config: Config) -> None:
    """Adds tables to a message that has its hosts; a table without an optimizer has no rate."""
    rates = [table.rate or ConstantRate(value=table.optimizer.learning_rate)
             if table.optimizer is not None else None for table in tables]
    tags = rate_tags(rate for rate in rates if rate is not None)
    for table, rate in zip(tables, rates):
        parameters = config.table_descriptor.add(
            name=table.name, dimension=table.dimension,
            vocabulary_size=max(table.vocabulary_size, config.num_hosts)).optimization_parameters
        if isinstance(rate, DynamicRate):
            parameters.learning_rate.dynamic.tag = (
                rate.function.tag if isinstance(rate.function, RateOfTag) else tags[rate])
        elif rate is not None:
            parameters.learning_rate.constant = rate.value
        if table.optimizer is not None:
            _encode_optimizer(table.optimizer, parameters)
        if table.quantization is not None:
            _encode_quantization(table.quantization, parameters.simulated_quantization)
        if table.hot_id_replication:
            parameters.hot_id_replication_configuration.status = HotIds.ENABLED


def _encode_optimizer(optimizer: Optimizer, parameters: Parameters) -> None:
    """Writes everything of an optimizer but its learning rate, as the original does."""
    parameters.gradient_accumulation_status = (
        Accumulation.ENABLED if optimizer.accumulate else Accumulation.DISABLED)
    for bounds, message in ((optimizer.clip_gradients, parameters.gradient_clipping_limits),
                            (optimizer.clip_weights, parameters.clipping_limits)):
        if bounds.lower is not None:
            message.lower.value = bounds.lower
        if bounds.upper is not None:
            message.upper.value = bounds.upper
    if optimizer.decay:  # The original leaves out a factor of 0, which changes nothing.
        parameters.weight_decay_factor = optimizer.decay
        parameters.multiply_weight_decay_factor_by_learning_rate = optimizer.decay_times_rate
    message = getattr(parameters, optimizer.field)
    message.SetInParent()  # It may have no field, or only zeros.
    for field in message.DESCRIPTOR.fields:
        setattr(message, field.name, getattr(optimizer, field.name))


def decode_optimizer(parameters: Parameters) -> Optimizer:
    """Returns the optimizer of a message, unchecked; its algorithm must be one of `OPTIMIZERS`."""
    field = parameters.WhichOneof('parameters')
    assert field is not None, 'as the caller promises'
    message = getattr(parameters, field)
    own = {one.name: getattr(message, one.name) for one in message.DESCRIPTOR.fields}
    return OPTIMIZERS[field](
        **own, learning_rate=parameters.learning_rate.constant,
        accumulate=parameters.gradient_accumulation_status != Accumulation.DISABLED,
        clip_weights=_decode_bounds(parameters.clipping_limits),
        clip_gradients=_decode_bounds(parameters.gradient_clipping_limits),
        decay=parameters.weight_decay_factor or None,
        decay_times_rate=parameters.multiply_weight_decay_factor_by_learning_rate)


def _decode_bounds(limits: config_pb2.ClippingLimits) -> Bounds:
    return Bounds(lower=limits.lower.value if limits.HasField('lower') else None,
                  upper=limits.upper.value if limits.HasField('upper') else None)


def _encode_quantization(quantization: Quantization,
                         message: config_pb2.SimulatedQuantization) -> None:
    message.enabled = True
    message.num_buckets = quantization.num_buckets
    message.clipping_limits.lower.value = quantization.lower
    message.clipping_limits.upper.value = quantization.upper


def _decode_quantization(message: config_pb2.SimulatedQuantization
                         ) -> Quantization | None:
    """Returns the quantization in a message, unchecked; `None` if it is not enabled."""
    if not message.enabled:
        return None
    limits = message.clipping_limits
    return Quantization(num_buckets=message.num_buckets, lower=limits.lower.value,
                        upper=limits.upper.value)


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
                  hot_id_replication=HotIds.ENABLED == (
                      descriptor.optimization_parameters.hot_id_replication_configuration.status),
                  quantization=_decode_quantization(
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


def _refuse_loss(config: Config, plan: Plan, names: Sequence[str]) -> None:
    """Raises an error unless the plan encodes to the parts of the message that have an effect.

    `names` are those of features in the plan, in the order of the message.
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
