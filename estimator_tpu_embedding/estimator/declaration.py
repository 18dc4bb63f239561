"""Checks the arguments of `TPUEmbedding`; the errors have the texts of the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import defaults
from ..core.specs import Topology
from ..proto.codec import Config
from .addresses import EMULATED, lead_here
from .parameters_base import _OptimizationParameters
from .system import topology_of
from .table_config import DeviceConfig, FeatureConfig, TableConfig

INFERENCE: int = Config.INFERENCE
TRAINING: int = Config.TRAINING


def check_tables(tables: Mapping[str, Any], features: Mapping[str, Any]) -> None:
    """Raises ValueError unless every table has a feature and every feature its table."""
    for name, config in tables.items():
        if not isinstance(config, TableConfig):
            raise ValueError('Value of `table_to_config_dict` must be of type `TableConfig`, got '
                             f'{type(config)} for {name}.')
    for name, config in features.items():
        if not isinstance(config, FeatureConfig):
            raise ValueError('Value of `feature_to_config_dict` must be of type `FeatureConfig`, '
                             f'got {type(config)} for {name}.')
    used = {config.table_id for config in features.values()}
    if unused := tables.keys() - used:
        raise ValueError('`table_to_config_dict` specifies table that is not used in '
                         f'`feature_to_config_dict`: {unused}.')
    if unknown := used - tables.keys():
        raise ValueError('`feature_to_config_dict` refers to a table that is not specified in '
                         f'`table_to_config_dict`: {unknown}.')


def system_of(master: str | None, device_config: DeviceConfig | None,
              master_job_name: str | None) -> tuple[Topology, str]:
    """Returns the topology, and the beginning of the device strings of its hosts."""
    if device_config is None:
        lead_here('TPUEmbedding', 'the workers of a job' if defaults.current(
            ).cluster.is_from_script else EMULATED, master=master)
        return topology_of(master, None, None), f'/job:{master_job_name or "localhost"}'
    hosts, cores = device_config.num_hosts, device_config.num_cores
    if cores % hosts:
        raise ValueError(f'num_hosts ({hosts}) should divide num_cores ({cores}) but does not.')
    return Topology(num_hosts=hosts, cores_per_host=cores // hosts), device_config.job_name


def check_mode(mode: int, parameters: Any, tables: Mapping[str, TableConfig]) -> None:
    """Raises ValueError unless training has optimizers, and inference none for all tables."""
    if mode == INFERENCE:
        if parameters is not None:
            raise ValueError('`optimization_parameters` should be `None` for inference mode. '
                             f'Received: {parameters}.')
    elif mode != TRAINING:
        raise ValueError(f'`mode` only supports {TRAINING} and {INFERENCE}; got {mode}.')
    elif parameters:
        if not isinstance(parameters, _OptimizationParameters):
            raise ValueError('`optimization_parameters` must inherit from '
                             '`_OptimizationParameters`. `type(optimization_parameters)`='
                             f'{type(parameters)}')
    elif any(config.optimization_parameters is None for config in tables.values()):
        raise ValueError('`optimization_parameters` is missing.')
