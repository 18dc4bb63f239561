"""Encodes a declaration as `TPUEmbeddingConfiguration`, byte for byte as TensorFlow 2.15 does.

The config of TF1, in `proto/codec.py`, has another order and no names of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.rates import DynamicRate, rate_tags
from ..proto import quantization
from ..proto.codec import Config, LowDimensionalPacking, Parameters, encode_optimizer
from .declaration import Declared
from .optimizers import core_optimizer, rate_of


def config_of(declared: Declared, output_shapes: Sequence[tuple[int, ...]], *, num_hosts: int,
              num_cores: int, pipelined: bool) -> Config:
    """Encodes a declaration.

    Args:
      declared: the tables, and the features in the order of `tf.nest.flatten`.
      output_shapes: the shape of each feature on one replica, without the width.
      num_hosts: of the system. A small table is raised to one row per host, as in the original.
      num_cores: of all hosts.
      pipelined: whether lookups run one step ahead of updates.

    Returns:
      A message whose mode is always TRAINING, because the original tells the mode at each enqueue.
    """
    config = Config(mode=Config.TRAINING, num_hosts=num_hosts, num_tensor_cores=num_cores,
                    sharding_strategy=Config.DIV_DEFAULT,
                    pipeline_execution_with_tensor_core=pipelined)
    tags = rate_tags(rate_of(table.optimizer) for table in declared.tables
                     if table.optimizer is not None)
    for table in declared.tables:
        descriptor = config.table_descriptor.add(
            name=table.name, vocabulary_size=max(table.vocabulary_size, num_hosts),
            dimension=table.dim)
        parameters = descriptor.optimization_parameters
        if table.optimizer is not None:
            _encode_optimizer(table.optimizer, tags, parameters)
        if table.quantization_config is not None:
            quantization.encode(table.quantization_config, parameters.simulated_quantization)
    ids = {id(table): number for number, table in enumerate(declared.tables)}
    for feature, shape in zip(declared.features, output_shapes):
        config.feature_descriptor.add(name=feature.name or '', table_id=ids[id(feature.table)],
                                      input_shape=shape)
    return config


def _encode_optimizer(optimizer: Any, tags: dict[DynamicRate, int], parameters: Parameters
                      ) -> None:
    rate = rate_of(optimizer)
    if isinstance(rate, DynamicRate):
        parameters.learning_rate.dynamic.tag = tags[rate]
    else:
        parameters.learning_rate.constant = rate.value
    if optimizer.low_dimensional_packing_status:
        parameters.low_dimensional_packing_status = LowDimensionalPacking.ENABLED
    encode_optimizer(core_optimizer(optimizer), parameters)
