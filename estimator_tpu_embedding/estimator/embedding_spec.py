"""`EmbeddingConfigSpec` of `tf.compat.v1.estimator.tpu.experimental`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _tf
from ..errors import Problem, UnsupportedError
from .parameters import AdagradParameters, StochasticGradientDescentParameters

_PARAMETERS = (AdagradParameters, StochasticGradientDescentParameters)


class _Fields(NamedTuple):
    """Not the arguments in their order: the original's tuple has one field more."""

    feature_columns: list[Any]
    tensor_core_feature_columns: list[Any]
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
    """Which embedding columns a model uses and how their tables are trained."""

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
          optimization_parameters: `AdagradParameters` or `StochasticGradientDescentParameters`.
          clipping_limit: has no effect, as in the original.
          pipeline_execution_with_tensor_core: not supported yet.
          experimental_gradient_multiplier_fn: not supported yet.
          feature_to_config_dict: not supported yet.
          table_to_config_dict: not supported yet.
          partition_strategy: `'div'` or `'mod'`.
          profile_data_directory: not supported yet.

        Raises:
          ValueError, TypeError: as the original does; TypeError for an unknown argument, with
            the one that was probably meant.
          UnsupportedError: for what is not supported yet.
        """
        if unknown:
            raise TypeError('\n'.join(_unknown(name) for name in unknown))
        by_dicts = bool(feature_to_config_dict and table_to_config_dict)
        if bool(feature_columns) == by_dicts:
            raise ValueError('Exactly one of `feature_columns` and the pair '
                             '`feature_to_config_dict` and `table_to_config_dict` must be be '
                             'specified.')
        if partition_strategy not in ('div', 'mod'):
            raise ValueError(f'Invalid partition_strategy {partition_strategy}. Must be one of '
                             '"mod" or "div".')
        _refuse_unsupported(
            pipeline_execution_with_tensor_core=pipeline_execution_with_tensor_core,
            experimental_gradient_multiplier_fn=experimental_gradient_multiplier_fn,
            feature_to_config_dict=feature_to_config_dict,
            table_to_config_dict=table_to_config_dict,
            profile_data_directory=profile_data_directory)
        supported = _tf.tpu_embedding_columns()
        for column in feature_columns or ():
            if not isinstance(column, supported):
                raise TypeError(f'All feature columns must be supported types in {supported}. '
                                f'Got {type(column)}')
        if not isinstance(optimization_parameters, _PARAMETERS):
            raise ValueError('optimization_parameters must be an instance of type '
                             f'{_PARAMETERS}. Got {type(optimization_parameters)}.')
        return super().__new__(
            cls, list(feature_columns or ()), [], optimization_parameters, clipping_limit,
            pipeline_execution_with_tensor_core, experimental_gradient_multiplier_fn,
            feature_to_config_dict, table_to_config_dict, partition_strategy,
            profile_data_directory)

    def __getnewargs__(self) -> tuple[Any, ...]:
        """The arguments of `__new__`, which are not the fields, so that copies work."""
        return tuple(getattr(self, name) for name in _ARGUMENTS)


def _unknown(name: str) -> str:
    # 'column' is what the published documentation of the class shows; it never existed.
    near = difflib.get_close_matches(name, _ARGUMENTS, n=1, cutoff=0.5)
    meant = 'feature_columns' if 'column' in name else (near[0] if near else None)
    return str(Problem(
        'E461', 'EmbeddingConfigSpec', f'arguments are {", ".join(_ARGUMENTS)}', f'"{name}"',
        f'did you mean `{meant}`?' if meant else ''))


def _refuse_unsupported(**arguments: Any) -> None:
    given = [name for name, value in arguments.items() if value]
    if given:
        raise UnsupportedError(*[Problem(
            'E905', 'EmbeddingConfigSpec', f'{name} is not supported yet',
            remedy='Declare feature_columns instead.' if name.endswith('dict')
            else 'Leave it out.') for name in given])
