"""Declares tables, features and the system by name: `TableConfig` and its kin."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..core.optimizers import ConstantRate, DynamicRate, Rate
from ..core.specs import COMBINERS, FeatureSpec, TableSpec
from .optimizer_parameters import _OptimizationParameters


class _TableFields(NamedTuple):
    vocabulary_size: int
    dimension: int
    initializer: Callable[..., Any]
    combiner: str | None
    hot_id_replication: bool
    learning_rate: float | None
    learning_rate_fn: Callable[[Any], Any] | None
    optimization_parameters: Any


class TableConfig(_TableFields):
    """The size of a table, how the rows of one sample are combined, and how it is trained.

    A table without a rate takes the rate of the whole embedding, and one without an optimizer
    its optimizer.

    >>> video = TableConfig(vocabulary_size=22, dimension=4, combiner='sum', learning_rate=0.1)
    >>> video.vocabulary_size, video.dimension, video.combiner
    (22, 4, 'sum')
    >>> TableConfig(vocabulary_size=0, dimension=4)
    Traceback (most recent call last):
    ValueError: vocabulary_size must >= 1. Received: 0.
    """

    __slots__ = ()

    def __new__(cls, vocabulary_size: int, dimension: int,
                initializer: Callable[..., Any] | None = None, combiner: str | None = 'mean',
                hot_id_replication: bool = False, learning_rate: float | None = None,
                learning_rate_fn: Callable[[Any], Any] | None = None,
                optimization_parameters: Any = None) -> TableConfig:
        """Checks and stores the arguments.

        Args:
          vocabulary_size: number of rows, >= 1.
          dimension: width of a row, >= 1.
          initializer: the initializer of the rows. `None` is a truncated normal of deviation
            `1 / sqrt(dimension)`.
          combiner: `'mean'`, `'sum'`, `'sqrtn'`, or `None` for one id per sample.
          hot_id_replication: a hint to the hardware; changes no number.
          learning_rate: the rate of this table; 0.0 freezes it.
          learning_rate_fn: a function from the global step to the rate, instead.
          optimization_parameters: the optimizer of this table.

        Raises:
          ValueError: as the original does.
        """
        if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
            raise ValueError(f'vocabulary_size must >= 1. Received: {vocabulary_size}.')
        if not isinstance(dimension, int) or dimension < 1:
            raise ValueError(f'dimension must be a positive int. Received: {dimension}.')
        if initializer is not None and not callable(initializer):
            raise ValueError(f'initializer must be callable if specified. Received: {initializer}.')
        if combiner not in COMBINERS:
            raise ValueError('combiner must be "mean", "sum", "sqrtn" or None. Received: '
                             f'{combiner}.')
        if learning_rate is not None and learning_rate_fn is not None:
            raise ValueError('At most one of learning_rate and learning_rate_fn can be None. '
                             f'Received: {learning_rate} and {learning_rate_fn}')
        if optimization_parameters is not None and not isinstance(
                optimization_parameters, _OptimizationParameters):
            raise ValueError('`optimization_parameters` must inherit from '
                             '`_OptimizationParameters`. Received: '
                             f'`type(optimization_parameters)`={type(optimization_parameters)}.')
        if initializer is None:
            initializer = tf.truncated_normal_initializer(stddev=1 / math.sqrt(dimension))
        return super().__new__(cls, vocabulary_size, dimension, initializer, combiner,
                               hot_id_replication, learning_rate, learning_rate_fn,
                               optimization_parameters)


class _FeatureFields(NamedTuple):
    table_id: str
    max_sequence_length: int
    weight_key: str | None


class FeatureConfig(_FeatureFields):
    """The table that a feature looks up in, and how.

    >>> FeatureConfig('video', max_sequence_length=3)
    FeatureConfig(table_id='video', max_sequence_length=3, weight_key=None)
    """

    __slots__ = ()

    def __new__(cls, table_id: str, max_sequence_length: int = 0,
                weight_key: str | None = None) -> FeatureConfig:
        """Checks and stores the arguments.

        Args:
          table_id: the name of the table.
          max_sequence_length: above 0 for a sequence, whose ids are not combined.
          weight_key: the feature that holds the weights of the ids, or `None`.

        Raises:
          ValueError: for a length that is negative or no int.
        """
        if not isinstance(max_sequence_length, int) or max_sequence_length < 0:
            raise ValueError('max_sequence_length must be zero or a positive int, got '
                             f'{max_sequence_length}.')
        return super().__new__(cls, table_id, max_sequence_length, weight_key)


class DeviceConfig(NamedTuple):
    """The size of a system that is stated.

    Attributes:
      num_hosts: hosts, >= 1.
      num_cores: cores of all hosts together, a multiple of `num_hosts`.
      job_name: the first part of the names of hosts, such as `'/job:worker'`.

    >>> DeviceConfig(num_hosts=2, num_cores=8, job_name='/job:worker').num_cores
    8
    """

    num_hosts: int
    num_cores: int
    job_name: str


def configs_to_specs(table_to_config: Mapping[str, TableConfig],
                     feature_to_config: Mapping[str, FeatureConfig]
                     ) -> tuple[list[TableSpec], list[FeatureSpec]]:
    """Returns the tables and features that configs declare, with the names of their keys."""
    tables = [
        TableSpec(
            name=name, vocabulary_size=int(config.vocabulary_size),
            dimension=int(config.dimension), combiner=config.combiner,
            initializer=config.initializer, rate=_rate(config),
            hot_id_replication=bool(config.hot_id_replication),
            optimizer=(config.optimization_parameters.to_optimizer()
                       if config.optimization_parameters is not None else None))
        for name, config in table_to_config.items()]
    features = [
        FeatureSpec(name=name, table=config.table_id, weight_feature=config.weight_key,
                    max_sequence_length=int(config.max_sequence_length))
        for name, config in feature_to_config.items()]
    return tables, features


def _rate(config: TableConfig) -> Rate | None:
    if config.learning_rate_fn is not None:
        return DynamicRate(function=config.learning_rate_fn)
    if config.learning_rate is not None:
        return ConstantRate(value=config.learning_rate)
    return None
