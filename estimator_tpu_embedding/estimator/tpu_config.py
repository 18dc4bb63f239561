"""Holds the settings of a job for its TPU system: `TPUConfig`, `InputPipelineConfig`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _legacy, _tf
from .checks import check_partition_dims, check_positive, parse_iterations_per_loop


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
