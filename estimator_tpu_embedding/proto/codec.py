"""Plan <-> `TPUEmbeddingConfiguration`.

Encoding fills the message as TF 2.15 does, down to the fields that it leaves empty (feature
names, `num_features`, `batch_size_per_tensor_core`), so equal declarations give equal bytes.
Decoding gives a plan that encodes to the same bytes, or an error: nothing is lost silently.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.names import name_problems
from ..core.optimizer import Limits, Optimizer
from ..core.optimizers import OPTIMIZERS, UNDOCUMENTED
from ..core.plan import Plan, problems_of, resolve
from ..core.rates import ConstantRate, DynamicRate, rate_tags
from ..core.specs import FeatureSpec, TableSpec, Topology
from ..errors import ConfigError, Problem, UnsupportedError, shown
from . import optimization_parameters_pb2 as parameters_pb2
from . import quantization
from . import tpu_embedding_configuration_pb2 as config_pb2

Config = config_pb2.TPUEmbeddingConfiguration
Parameters = parameters_pb2.OptimizationParameters
Accumulation = parameters_pb2.GradientAccumulationStatus
LowDimensionalPacking = parameters_pb2.LowDimensionalPackingStatus

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
        encode_optimizer(optimizer, parameters)
        if table.quantization is not None:
            quantization.encode(table.quantization, parameters.simulated_quantization)
        if table.hot_id_replication:
            parameters.hot_id_replication_configuration.status = _HotIds.ENABLED
    for feature in plan.features:
        config.feature_descriptor.add(table_id=plan.table_index(feature.table),
                                      input_shape=plan.output_shape(feature)[:-1])
    return config


def encode_optimizer(optimizer: Optimizer, parameters: Parameters) -> None:
    """Writes all of an optimizer but its learning rate, as the original does."""
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
      UnsupportedError: if the only reason is an optimizer whose formula is not documented.
    """
    tables, features = _declared(config)
    is_sized = not _topology_problems(config)
    topology = (Topology(num_hosts=config.num_hosts,
                         cores_per_host=config.num_tensor_cores // config.num_hosts)
                if is_sized else Topology())
    batch = next((feature.input_shape[0] for feature in config.feature_descriptor
                  if feature.input_shape and feature.input_shape[0] > 0), 1)
    run = {'batch_size': batch * topology.num_cores,
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
    _refuse_loss(config, plan)
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
    for position, descriptor in enumerate(config.feature_descriptor if tables else ()):
        table = tables[descriptor.table_id if 0 <= descriptor.table_id < len(tables) else 0].name
        features.append(FeatureSpec(
            name=(_legal('feature', descriptor.name, position) if descriptor.name
                  else f'{table[:900]}:{position:06}'), table=table,
            max_sequence_length=max(0, *descriptor.input_shape[1:2], 0)))
    return tables, features


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
    if not _is_ordered(config):
        raise ConfigError(Problem(
            'E471', 'table_descriptor, feature_descriptor', 'tables must be sorted by name and '
            'features grouped by table, in the order of tables', 'another order',
            'TensorFlow 2.15 writes them so; sort them, and change each table_id with them.'))
    names = [field.name for field in Config.DESCRIPTOR.fields
             if _bytes_of(want, field.name) != _bytes_of(again, field.name)]
    raise ConfigError(Problem(
        'E470', ', '.join(names) or 'config', 'it must not hold what a plan cannot',
        'fields that TensorFlow 2.15 leaves empty' if names else 'unknown fields'))


def _is_ordered(config: Config) -> bool:
    names = [table.name for table in config.table_descriptor]
    tables = [feature.table_id for feature in config.feature_descriptor]
    return names == sorted(names) and tables == sorted(tables)


def _bytes_of(config: Config, name: str) -> bytes:
    """One field of a message, alone, as bytes."""
    single = Config()
    single.CopyFrom(config)
    single.DiscardUnknownFields()
    for field in Config.DESCRIPTOR.fields:
        if field.name != name:
            single.ClearField(field.name)
    return single.SerializeToString(deterministic=True)
