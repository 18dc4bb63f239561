"""Encodes a plan as `TPUEmbeddingConfiguration`; encodes and decodes optimizers.

Equal declarations give the bytes that TF 2.15 writes in TF1. So the fields that TF 2.15 leaves
empty stay empty: feature names, `num_features` and `batch_size_per_tensor_core`. `decoding`
decodes configs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..core.optimizers import OPTIMIZERS, Bounds, Optimizer
from ..core.plan import Plan
from ..core.rates import ConstantRate, DynamicRate, rate_tags
from ..errors import ConfigError, Problem
from . import optimization_parameters_pb2 as parameters_pb2
from . import quantization
from . import tpu_embedding_configuration_pb2 as config_pb2

Config = config_pb2.TPUEmbeddingConfiguration
Parameters = parameters_pb2.OptimizationParameters
Accumulation = parameters_pb2.GradientAccumulationStatus
LowDimensionalPacking = parameters_pb2.LowDimensionalPackingStatus
HotIds = parameters_pb2.HotIdReplicationConfiguration
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
    """Encodes a plan.

    Returns:
      A message with one `table_descriptor` per table and one `feature_descriptor` per feature,
      in the plan's order. As in the original, `vocabulary_size` is raised to the number of
      hosts, because the hardware wants a row on every host.
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
            parameters.hot_id_replication_configuration.status = HotIds.ENABLED
    for feature in plan.features:
        config.feature_descriptor.add(table_id=plan.table_index(feature.table),
                                      input_shape=plan.output_shape(feature)[:-1])
    return config


def encode_optimizer(optimizer: Optimizer, parameters: Parameters) -> None:
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
    """Returns the optimizer of a message, and does not check its numbers.

    The caller has checked that its algorithm is one of `OPTIMIZERS`.
    """
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


def _decode_bounds(limits: parameters_pb2.ClippingLimits) -> Bounds:
    return Bounds(lower=limits.lower.value if limits.HasField('lower') else None,
                  upper=limits.upper.value if limits.HasField('upper') else None)
