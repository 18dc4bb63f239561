"""Holds `EmbeddingConfigSpec`, which declares the embedding columns of a TPUEstimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..columns.embedding_columns import columns_to_specs
from ..core.partition import STRATEGIES
from ..core.specs import FeatureSpec, TableSpec
from ..errors import Problem, did_you_mean, noted
from . import optimizer_parameters as p
from .table_config import FeatureConfig, TableConfig, configs_to_specs

PARAMETERS_OF_COLUMNS = (
    p.ProximalAdagradParameters, p.AdagradParameters, p.AdamParameters, p.FtrlParameters,
    p.StochasticGradientDescentParameters, p.MomentumParameters, p.RMSPropParameters)
_WHICH_COLUMNS = (
    'feature_columns is a list of columns made by tf.tpu.experimental.embedding_column or '
    'shared_embedding_columns.')
_EXAMPLE = (
    'For example: EmbeddingConfigSpec(feature_columns=columns, optimization_parameters='
    'tf.compat.v1.tpu.experimental.AdagradParameters(learning_rate=0.1))')


class _Fields(NamedTuple):
    """The fields of the original's tuple, which has one more than there are arguments."""

    feature_columns: list[Any] | None
    tensor_core_feature_columns: list[Any] | None
    optimization_parameters: Any
    clipping_limit: float | None
    pipeline_execution_with_tensor_core: bool
    experimental_gradient_multiplier_fn: Callable[[Any], Any] | None
    feature_to_config_dict: Mapping[str, Any] | None
    table_to_config_dict: Mapping[str, Any] | None
    partition_strategy: str
    profile_data_directory: str | None


_ARGUMENTS = tuple(name for name in _Fields._fields if name != 'tensor_core_feature_columns')


class EmbeddingConfigSpec(_Fields):
    """The embedding columns of a model, and how their tables are trained.

    Either columns declare features and tables, or two dicts do. The arguments are described at
    `__new__`.

    >>> spec = EmbeddingConfigSpec(
    ...     feature_to_config_dict={'watched': FeatureConfig('video')},
    ...     table_to_config_dict={'video': TableConfig(vocabulary_size=22, dimension=4)},
    ...     optimization_parameters=p.StochasticGradientDescentParameters(0.1))
    >>> tables, features = spec.to_specs()
    >>> tables[0].name, tables[0].vocabulary_size, features[0].name
    ('video', 22, 'watched')
    >>> EmbeddingConfigSpec(partition_strategy='mod')
    Traceback (most recent call last):
    ValueError: Exactly one of `feature_columns` and the pair `feature_to_config_dict` and \
`table_to_config_dict` must be be specified.
    """

    __slots__ = ()

    def __new__(cls, feature_columns: Sequence[Any] | None = None,
                optimization_parameters: Any = None, clipping_limit: float | None = None,
                pipeline_execution_with_tensor_core: bool = False,
                experimental_gradient_multiplier_fn: Callable[[Any], Any] | None = None,
                feature_to_config_dict: Mapping[str, Any] | None = None,
                table_to_config_dict: Mapping[str, Any] | None = None,
                partition_strategy: str = 'div', profile_data_directory: str | None = None,
                **unknown: Any) -> EmbeddingConfigSpec:
        """Checks and stores the arguments.

        Args:
          feature_columns: from `tf.tpu.experimental.embedding_column` and
            `shared_embedding_columns`.
          optimization_parameters: the optimizer of all tables without their own. For columns it
            is one of seven classes.
          clipping_limit: has no effect, as in the original; one warning says so.
          pipeline_execution_with_tensor_core: look-ups run a step ahead of updates.
          experimental_gradient_multiplier_fn: a function from the global step to a factor of all
            gradients of tables.
          feature_to_config_dict: `FeatureConfig` by feature, instead of columns.
          table_to_config_dict: `TableConfig` by table.
          partition_strategy: `'div'` or `'mod'`.
          profile_data_directory: a local directory. Training writes statistics of the ids there,
            for `etpe plan --stats`. A later run of the same kind adds to them.

        Raises:
          ValueError: as the original does.
          TypeError: as the original does. For an unknown argument it names the one that was
            probably meant.
        """
        if unknown:
            raise TypeError('\n'.join(_unknown(name) for name in unknown))
        feature_columns = None if feature_columns is None else list(feature_columns)
        by_dicts = bool(feature_to_config_dict and table_to_config_dict)
        if bool(feature_columns) == by_dicts:
            raise ValueError('Exactly one of `feature_columns` and the pair '
                             '`feature_to_config_dict` and `table_to_config_dict` must be be '
                             'specified.')
        if partition_strategy not in STRATEGIES:
            raise ValueError(f'Invalid partition_strategy {partition_strategy}. Must be one of '
                             '"mod" or "div".')
        if feature_columns:
            _check_columns(feature_columns, optimization_parameters)
        else:
            _check_dicts(feature_to_config_dict or {}, table_to_config_dict or {})
        if clipping_limit is not None:
            tf.logging.warning('%s', Problem(
                'W461', 'EmbeddingConfigSpec', 'clipping_limit has no effect, as in the original',
                str(clipping_limit), 'Set clip_weight_min and clip_weight_max of the '
                'optimization_parameters.'))
        looked_up, on_tensor_core = None, None
        if feature_columns:
            on_tensor_core = [c for c in feature_columns if _tf.is_tensor_core_column(c)]
            looked_up = [c for c in feature_columns if not _tf.is_tensor_core_column(c)]
        return super().__new__(
            cls, looked_up, on_tensor_core, optimization_parameters, clipping_limit,
            pipeline_execution_with_tensor_core, experimental_gradient_multiplier_fn,
            feature_to_config_dict, table_to_config_dict, partition_strategy,
            profile_data_directory)

    def __reduce__(self) -> Any:
        """Copies by fields, which differ from the arguments and were checked already."""
        return EmbeddingConfigSpec._make, (tuple(self),)

    def to_specs(self) -> tuple[list[TableSpec], list[FeatureSpec]]:
        """Returns the tables and features that the embedding engine holds.

        Raises:
          TypeError: for columns that no TPU looks up.
          ConfigError: if a feature is used by two columns.
        """
        if self.feature_columns is None:
            return configs_to_specs(self.table_to_config_dict or {},
                                    self.feature_to_config_dict or {})
        return columns_to_specs(self.feature_columns)


def _unknown(name: str) -> str:
    # The published documentation of the class shows 'column', which never existed.
    return str(Problem(
        'E461', 'EmbeddingConfigSpec', f'arguments are {", ".join(_ARGUMENTS)}', f'"{name}"',
        did_you_mean('feature_columns' if 'column' in name else name, _ARGUMENTS)))


def _check_columns(columns: Sequence[Any], parameters: Any) -> None:
    supported = (*_tf.other_columns_of_a_spec(), *_tf.old_tpu_embedding_columns(),
                 *_tf.tpu_embedding_columns())
    for column in columns:
        if not isinstance(column, supported):
            raise noted(TypeError(f'All feature columns must be supported types in {supported}. '
                                  f'Got {type(column)}'), _WHICH_COLUMNS)
    if not isinstance(parameters, PARAMETERS_OF_COLUMNS):
        raise noted(ValueError('optimization_parameters must be an instance of type '
                               f'{PARAMETERS_OF_COLUMNS}. Got {type(parameters)}.'), _EXAMPLE)


def _check_dicts(features: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    for name, config in features.items():
        if not isinstance(config, FeatureConfig):
            raise TypeError(f'Config for feature {name} must be of type `FeatureConfig`. Got '
                            f'{type(config)}')
        if config.table_id not in tables:
            raise noted(ValueError(f'Feature {name} refers to table {config.table_id} which is '
                                   'not in the table_to_config_dict.'),
                        did_you_mean(str(config.table_id), map(str, tables)))
    for name, config in tables.items():
        if not isinstance(config, TableConfig):
            raise TypeError(f'Config for table {name} must be of type `TableConfig`. Got '
                            f'{type(config)}')
