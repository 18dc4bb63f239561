"""Plan <-> `TPUEmbeddingConfiguration`.

Encoding fills the message as TF 2.15 does, down to the fields that it leaves empty (feature
names, `num_features`, `batch_size_per_tensor_core`), so equal declarations give equal bytes.
Decoding gives a plan that encodes to the same bytes, or an error: nothing is lost silently.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..core.names import name_problems
from ..core.optimizer import Limits, Optimizer
from ..core.optimizers import OPTIMIZERS
from ..core.plan import Plan, resolve
from ..core.rates import ConstantRate, DynamicRate, rate_tags
from ..core.specs import FeatureSpec, TableSpec, Topology
from ..errors import ConfigError, Problem, shown
from . import optimization_parameters_pb2 as parameters_pb2
from . import tpu_embedding_configuration_pb2 as config_pb2

Config = config_pb2.TPUEmbeddingConfiguration
Parameters = parameters_pb2.OptimizationParameters
Accumulation = parameters_pb2.GradientAccumulationStatus

_HotIds = parameters_pb2.HotIdReplicationConfiguration
MODES = {'inference': Config.INFERENCE, 'training': Config.TRAINING}
STRATEGIES = {'div': Config.DIV_DEFAULT, 'mod': Config.MOD}
INFERENCE_OPTIMIZER = OPTIMIZERS['stochastic_gradient_descent'](learning_rate=1.0)
"""What the original writes for tables that are not trained."""


@dataclasses.dataclass(frozen=True, slots=True)
class RateOfTag:
    """Stands in a decoded plan for a learning rate whose function is not in the message."""

    tag: int

    def __call__(self, step: Any) -> Any:
        raise ConfigError(Problem('E424', f'learning rate {self.tag}', 'a decoded config knows '
                                  'only the tag of this rate, not its function'))


def plan_to_config(plan: Plan) -> Config:
    """Encodes a plan.

    Returns:
      A message with one `table_descriptor` per table and one `feature_descriptor` per feature,
      in the plan's order. `vocabulary_size` is raised to the number of hosts, as in the
      original, since the engine wants a row on every host.
    """
    config = Config(
        mode=MODES[plan.mode], num_hosts=plan.topology.num_hosts,
        num_tensor_cores=plan.topology.num_cores,
        sharding_strategy=STRATEGIES[plan.strategy],
        pipeline_execution_with_tensor_core=plan.pipelined,
        profile_data_directory=plan.profile_directory)
    optimizers = [table.optimizer or INFERENCE_OPTIMIZER for table in plan.tables]
    rates = [table.rate or ConstantRate(value=optimizer.learning_rate)
             for table, optimizer in zip(plan.tables, optimizers)]
    tags = rate_tags(rates)
    for table, optimizer, rate in zip(plan.tables, optimizers, rates):
        descriptor = config.table_descriptor.add(
            name=table.name, dimension=table.dimension,
            vocabulary_size=max(table.vocabulary_size, plan.topology.num_hosts))
        parameters = descriptor.optimization_parameters
        if isinstance(rate, DynamicRate):
            parameters.learning_rate.dynamic.tag = (
                rate.function.tag if isinstance(rate.function, RateOfTag) else tags[rate])
        else:
            parameters.learning_rate.constant = rate.value
        _encode_optimizer(optimizer, parameters)
        if table.hot_id_replication:
            parameters.hot_id_replication_configuration.status = _HotIds.ENABLED
    for feature in plan.features:
        config.feature_descriptor.add(table_id=plan.table_index(feature.table),
                                      input_shape=plan.output_shape(feature)[:-1])
    return config


def _encode_optimizer(optimizer: Optimizer, parameters: Parameters) -> None:
    parameters.gradient_accumulation_status = (
        Accumulation.ENABLED if optimizer.accumulate else Accumulation.DISABLED)
    for limits, message in ((optimizer.clip_gradients, parameters.gradient_clipping_limits),
                            (optimizer.clip_weights, parameters.clipping_limits)):
        if limits.lower is not None:
            message.lower.value = limits.lower
        if limits.upper is not None:
            message.upper.value = limits.upper
    if optimizer.decay:  # The original leaves out a factor of 0, which changes nothing.
        parameters.weight_decay_factor = optimizer.decay
        parameters.multiply_weight_decay_factor_by_learning_rate = optimizer.decay_times_rate
    message = getattr(parameters, optimizer.field)
    message.SetInParent()  # It may have no field, or only zeros.
    for field in message.DESCRIPTOR.fields:
        setattr(message, field.name, getattr(optimizer, field.name))


def config_to_plan(config: Config) -> Plan:
    """Decodes a message into a plan.

    A message holds no combiners, initializers, initial slot values or rate functions; the plan
    has their defaults, and `RateOfTag` for the functions. Features without a name are called
    `<table>:<position>`.

    Raises:
      ConfigError: all reasons why the message is not a plan, fields that a plan cannot hold
        among them.
    """
    problems = _problems_of(config)
    if problems:
        raise ConfigError(*problems)
    tables = [
        TableSpec(name=descriptor.name, vocabulary_size=descriptor.vocabulary_size,
                  dimension=descriptor.dimension, combiner='sum',
                  optimizer=decode_optimizer(descriptor.optimization_parameters),
                  rate=_decode_rate(descriptor.optimization_parameters),
                  hot_id_replication=_are_hot_ids_replicated(descriptor.optimization_parameters))
        for descriptor in config.table_descriptor]
    features = [
        FeatureSpec(name=(descriptor.name
                          or f'{tables[descriptor.table_id].name[:900]}:{position:06}'),
                    table=tables[descriptor.table_id].name,
                    max_sequence_length=(*descriptor.input_shape[1:], 0)[0])
        for position, descriptor in enumerate(config.feature_descriptor)]
    plan = resolve(
        tables, features,
        Topology(num_hosts=config.num_hosts,
                 cores_per_host=config.num_tensor_cores // config.num_hosts),
        batch_size=config.feature_descriptor[0].input_shape[0] * config.num_tensor_cores,
        strategy={number: name for name, number in STRATEGIES.items()}[config.sharding_strategy],
        mode={number: name for name, number in MODES.items()}[config.mode],
        pipelined=config.pipeline_execution_with_tensor_core,
        profile_directory=config.profile_data_directory)
    _refuse_loss(config, plan)
    return plan


def _problems_of(config: Config) -> list[Problem]:
    """What keeps a message from being read as a plan at all; `resolve` finds the rest."""
    problems = []
    if config.mode not in MODES.values():
        problems.append(Problem('E441', 'mode', 'it must be TRAINING or INFERENCE',
                                str(config.mode)))
    if config.sharding_strategy not in STRATEGIES.values():
        problems.append(Problem('E440', 'sharding_strategy', 'it must be DIV_DEFAULT or MOD',
                                str(config.sharding_strategy)))
    if config.num_hosts < 1 or config.num_tensor_cores < 1 or (
            config.num_tensor_cores % config.num_hosts):
        problems.append(Problem(
            'E410', 'topology', 'num_hosts must be >= 1 and divide num_tensor_cores',
            f'num_hosts {config.num_hosts}, num_tensor_cores {config.num_tensor_cores}'))
    if not config.feature_descriptor:
        problems.append(Problem('E402', 'feature_descriptor', 'at least one is needed', 'none'))
    shapes = {tuple(feature.input_shape[:3]) for feature in config.feature_descriptor}
    if any(len(shape) not in (1, 2) or min(shape) < 1 for shape in shapes):
        problems.append(Problem('E433', 'feature_descriptor', 'input_shape must be [batch] or '
                                '[batch, length], each >= 1', str(sorted(shapes)[:5])))
    elif len({shape[0] for shape in shapes}) > 1:
        problems.append(Problem('E433', 'feature_descriptor', 'all features must have the same '
                                'batch size', str(sorted({shape[0] for shape in shapes})[:5])))
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
        if field not in OPTIMIZERS:
            problems.append(Problem('E443', f'table "{shown(table.name)}"', 'the optimizer must '
                                    f'be one of {", ".join(sorted(OPTIMIZERS))}', str(field)))
    return problems


def _decode_rate(parameters: Parameters) -> DynamicRate | None:
    if parameters.learning_rate.WhichOneof('learning_rate') == 'dynamic':
        return DynamicRate(function=RateOfTag(parameters.learning_rate.dynamic.tag))
    return None


def _are_hot_ids_replicated(parameters: Parameters) -> bool:
    return parameters.hot_id_replication_configuration.status == _HotIds.ENABLED


def decode_optimizer(parameters: Parameters) -> Optimizer:
    """The optimizer of a message whose algorithm is one of `OPTIMIZERS`, its numbers unchecked."""
    field = parameters.WhichOneof('parameters')
    assert field is not None, 'checked by _problems_of'
    message = getattr(parameters, field)
    own = {one.name: getattr(message, one.name) for one in message.DESCRIPTOR.fields}
    return OPTIMIZERS[field](
        **own, learning_rate=parameters.learning_rate.constant,
        accumulate=parameters.gradient_accumulation_status != Accumulation.DISABLED,
        clip_weights=_decode_limits(parameters.clipping_limits),
        clip_gradients=_decode_limits(parameters.gradient_clipping_limits),
        decay=parameters.weight_decay_factor or None,
        decay_times_rate=parameters.multiply_weight_decay_factor_by_learning_rate)


def _decode_limits(limits: parameters_pb2.ClippingLimits) -> Limits:
    return Limits(lower=limits.lower.value if limits.HasField('lower') else None,
                  upper=limits.upper.value if limits.HasField('upper') else None)


def _refuse_loss(config: Config, plan: Plan) -> None:
    """Raises unless the plan encodes to the message again, feature names aside."""
    want = Config()
    want.CopyFrom(config)
    for feature in want.feature_descriptor:
        feature.ClearField('name')
    again = plan_to_config(plan)
    if again.SerializeToString(deterministic=True) == want.SerializeToString(deterministic=True):
        return
    names = [field.name for field in Config.DESCRIPTOR.fields
             if _bytes_of(want, field.name) != _bytes_of(again, field.name)]
    raise ConfigError(Problem(
        'E470', ', '.join(names) or 'config', 'a plan cannot hold everything that is here, for '
        'example unknown fields, tables that are not sorted by name, or features that are not '
        'grouped by table'))


def _bytes_of(config: Config, name: str) -> bytes:
    """One field of a message, alone, as bytes."""
    single = Config()
    single.CopyFrom(config)
    single.DiscardUnknownFields()
    for field in Config.DESCRIPTOR.fields:
        if field.name != name:
            single.ClearField(field.name)
    return single.SerializeToString(deterministic=True)
