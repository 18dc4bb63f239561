"""Holds and checks the settings of a job for its TPU system: `TPUConfig`, `InputPipelineConfig`.

The checks have the errors of the original.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _legacy, _tf


class ExportSavedModelApiVersion(enum.Enum):
    """The party that rewrites a model for the TPU graph of an export, which is not written here."""

    V1 = 1
    V2 = 2


class InputPipelineConfig:
    """The ways in which input reaches the cores; the values are ints, as in the original.

    Attributes:
      PER_SHARD_V1: 1, `input_fn` is called once per core.
      PER_HOST_V1: 2, `input_fn` is called once per host, and its batches are cut among the cores.
      PER_HOST_V2: 3, `input_fn` is called once per host, and its cores take turns.
      BROADCAST: 4, `input_fn` is called once, and every core gets the same samples.
      SLICED: 5, `input_fn` is called once, and its batches are cut among all cores.

    >>> TPUConfig(per_host_input_for_training=True).per_host_input_for_training
    2
    >>> TPUConfig(per_host_input_for_training=False).per_host_input_for_training
    1
    """

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class _TPUConfigFields(NamedTuple):
    iterations_per_loop: int | str
    num_shards: int | None
    num_cores_per_replica: int | None
    per_host_input_for_training: int
    tpu_job_name: str | None
    initial_infeed_sleep_secs: int | None
    input_partition_dims: Sequence[Any] | None
    eval_training_input_configuration: int
    experimental_host_call_every_n_steps: int
    experimental_allow_per_host_v2_parallel_get_next: bool
    experimental_feed_hook: Any


class TPUConfig(_TPUConfigFields):
    """The part of a `RunConfig` that describes the TPU system.

    Attributes:
      iterations_per_loop: the steps of one `session.run`: a positive int or digit string, or a
        time such as `'30s'`, `'5m'`, `'1h'`.
      num_shards: the number of replicas, checked against the system. `None` takes the system's.
        Where nobody asked for a size of the emulated system, `num_shards` sets that size.
      per_host_input_for_training: one of `InputPipelineConfig`; `True` is `PER_HOST_V1` and
        `False` is `PER_SHARD_V1`.
      tpu_job_name: the name in `TF_CONFIG['service']['tpu_worker_job_name']` if `None`. It has no
        effect here, where there are no jobs.

    The other fields have the meanings, defaults and checks of the original.

    Raises:
      ValueError, TypeError: as the original does.

    >>> TPUConfig(iterations_per_loop='5m', num_shards=8).num_shards
    8
    >>> TPUConfig(num_shards=0)
    Traceback (most recent call last):
    ValueError: TPUConfig num_shards must be positive, got 0
    """

    __slots__ = ()

    def __new__(cls, iterations_per_loop: int | str = 2, num_shards: int | None = None,
                num_cores_per_replica: int | None = None,
                per_host_input_for_training: int | bool = True,
                tpu_job_name: str | None = None, initial_infeed_sleep_secs: int | None = None,
                input_partition_dims: Sequence[Any] | None = None,
                eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
                experimental_host_call_every_n_steps: int = 1,
                experimental_allow_per_host_v2_parallel_get_next: bool = False,
                experimental_feed_hook: Any = None) -> TPUConfig:
        """Checks and stores the arguments."""
        parse_iterations_per_loop(iterations_per_loop)
        if num_shards is not None:
            check_positive(num_shards, 'TPUConfig num_shards')
        if input_partition_dims is not None:
            check_partition_dims(
                input_partition_dims, num_cores_per_replica,
                is_per_host=per_host_input_for_training == InputPipelineConfig.PER_HOST_V2)
        if num_cores_per_replica not in (None, 1, 2, 4, 8, 16, 32, 64, 128):
            raise ValueError('num_cores_per_replica must be 1, 2, 4, 8, 16, 32, 64, 128; got '
                             f'{num_cores_per_replica}')
        if eval_training_input_configuration not in (InputPipelineConfig.PER_HOST_V1,
                                                     InputPipelineConfig.SLICED):
            raise ValueError('eval_training_input_configuration must be PER_HOST_V1 or SLICED; '
                             f'got {eval_training_input_configuration}')
        if isinstance(per_host_input_for_training, bool):
            per_host_input_for_training = (
                InputPipelineConfig.PER_HOST_V1 if per_host_input_for_training
                else InputPipelineConfig.PER_SHARD_V1)
        if initial_infeed_sleep_secs:
            check_positive(initial_infeed_sleep_secs, 'TPUConfig initial_infeed_sleep_secs')
        return super().__new__(
            cls, iterations_per_loop, num_shards, num_cores_per_replica,
            per_host_input_for_training, tpu_job_name or _job_name_of_tf_config(),
            initial_infeed_sleep_secs, input_partition_dims, eval_training_input_configuration,
            experimental_host_call_every_n_steps,
            experimental_allow_per_host_v2_parallel_get_next, experimental_feed_hook)


def _job_name_of_tf_config() -> str | None:
    """Returns the name that `TF_CONFIG` gives to the job of the TPU workers."""
    try:
        with _tf.without_deprecation_warnings():
            service = _legacy.run_config_class()().service or {}
    except ValueError:  # The RunConfig of the job will say it.
        return None
    name: str | None = service.get('tpu_worker_job_name')
    return name


def parse_iterations_per_loop(value: Any) -> tuple[int, str]:
    """Returns `(steps, 'count')` or `(seconds, 'seconds')` for a value of `iterations_per_loop`.

    Raises:
      ValueError: for a value that is neither a number of steps nor a time.

    >>> parse_iterations_per_loop('100'), parse_iterations_per_loop('5m')
    ((100, 'count'), (300, 'seconds'))
    """
    found = re.fullmatch(r'([1-9][0-9]*)([smh]?)', str(value))
    if found is None or isinstance(value, bool):
        raise ValueError(
            'Invalid TPUConfig `iterations_per_loop` value. Value must be positive integer value '
            'or time-based value `<N><s|m|h>` where <N> is anypositive integer and `s`, `m`, '
            '`h` are unit of time in seconds, minutes, hours respectively. Examples of valid '
            'values: `3600s`, `60m`, `1h`.')
    number, unit = int(found.group(1)), found.group(2)
    return (number * {'s': 1, 'm': 60, 'h': 3600}[unit], 'seconds') if unit else (number, 'count')


def check_positive(value: Any, name: str) -> None:
    """Raises the original's errors unless `value` is a positive whole number."""
    if not isinstance(value, int) and not hasattr(value, '__index__'):
        raise TypeError(f'{name} must be int, got {type(value)}')
    if value <= 0:
        raise ValueError(f'{name} must be positive, got {value}')


def check_partition_dims(dims: Any, cores: int | None, *, is_per_host: bool) -> None:
    """Raises ValueError unless `input_partition_dims` of a TPUConfig are possible.

    Args:
      dims: the value of `input_partition_dims`.
      cores: cores of a replica, or `None`.
      is_per_host: whether the input is PER_HOST_V2.
    """
    if not isinstance(dims, (list, tuple)) or len(dims) not in (1, 2):
        raise ValueError('input_partition_dims must be a list/tuple with one or two elements.')
    if not is_per_host:
        raise ValueError('input_partition_dims is only supported in PER_HOST_V2 mode.')
    if cores is None:
        raise ValueError('input_partition_dims requires setting num_cores_per_replica.')


def check_partitioned_input(dims: Any, cores: int, features: Any, labels: Any) -> None:
    """Raises ValueError unless `input_partition_dims` fit what input_fn gives.

    Args:
      dims: `[dims of features]` or `[dims of features, dims of labels]`: for each tensor, in the
        structure of the tensors, its parts per dimension, or `None`.
      cores: of a replica.
      features: the `tf.TypeSpec`s of what is not looked up.
      labels: likewise; `None` if there are none.
    """
    for number, (name, value) in enumerate((('feature', features), ('label', labels))):
        if value is None or number == len(dims) or number and dims[number] is None:
            continue
        where, given = f'TPUConfig.input_partition_dims[{number}] mismatched', dims[number]
        expected, got = (sorted(each) if isinstance(each, Mapping) else []
                         for each in (value, given))
        if expected != got:
            raise ValueError(f'{where} {name} keys. Expected {expected}, got {got}')
        for spec, parts in _matched(value, given, f'{where} the structure of {name}s.'):
            _check_parts(spec, parts, cores)


def _matched(value: Any, dims: Any, problem: str) -> Iterator[tuple[Any, Any]]:
    """Yields each tensor of a structure with its part of `dims`. A list is no structure."""
    if isinstance(value, Mapping):
        keys = sorted(value)
        if not isinstance(dims, Mapping) or sorted(dims) != keys:
            raise ValueError(f'{problem} Expected the keys {keys}, got {dims}')
        for key in keys:
            yield from _matched(value[key], dims[key], problem)
    elif isinstance(value, tuple):
        if not isinstance(dims, tuple) or len(dims) != len(value):
            raise ValueError(f'{problem} Expected a tuple of {len(value)}, got {dims}')
        for each in zip(value, dims):
            yield from _matched(*each, problem)
    else:
        yield value, dims


def _check_parts(spec: Any, dims: Any, cores: int) -> None:
    if dims is None:
        return
    if not isinstance(dims, (list, tuple)) or not all(
            isinstance(parts, int) and parts >= 1 for parts in dims):
        raise ValueError(f'All input partition dims must be >= 1. Got {dims}.')
    if math.prod(dims) not in (1, cores):
        raise ValueError('The product of each input partition dim should equal to '
                         f'num_cores_per_replica. (dim = {dims}, num_cores_per_replica = {cores})')
    shape = getattr(spec, 'shape', None)
    if math.prod(dims) > 1 and (shape is None or shape.rank != len(dims)):
        raise ValueError(
            'Input partition dims must have the same number of dimensions as the `Tensor` to be '
            f'partitioned. (tensor shape = {shape}, input partition dims = {dims}).')
