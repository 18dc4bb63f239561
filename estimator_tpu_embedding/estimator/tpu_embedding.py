"""`TPUEmbedding` of `tensorflow.python.tpu.tpu_embedding`: a declaration, checked, as a proto."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

from ..core.plan import Plan, resolve
from ..core.specs import Topology
from ..proto.codec import Config, plan_to_config
from .parameters import StochasticGradientDescentParameters, _OptimizationParameters
from .system import topology_of
from .table_config import DeviceConfig, FeatureConfig, TableConfig, configs_to_specs

INFERENCE: int = Config.INFERENCE
TRAINING: int = Config.TRAINING


class TPUEmbedding:
    """Tables and features of one job on one system, and the proto that configures it.

    Attributes:
      plan: what was resolved.
      config_proto: the `TPUEmbeddingConfiguration`, byte for byte as TensorFlow 2.15 makes it,
        learning-rate tags apart: they are numbered in order of appearance.
      batch_size_per_core: samples per core and step.
      num_cores: of all hosts.
      num_cores_per_host: of each.
      optimization_parameters: those of all tables without their own.
    """

    def __init__(self, table_to_config_dict: Mapping[str, TableConfig],
                 feature_to_config_dict: Mapping[str, FeatureConfig], batch_size: int, mode: int,
                 master: str | None = None, optimization_parameters: Any = None,
                 cluster_def: Any = None, pipeline_execution_with_tensor_core: bool = False,
                 partition_strategy: str = 'div', profile_data_directory: str | None = None,
                 device_config: DeviceConfig | None = None, master_job_name: str | None = None):
        """Checks the declaration and resolves it.

        Args:
          table_to_config_dict: `TableConfig` by name.
          feature_to_config_dict: `FeatureConfig` by name.
          batch_size: samples of all cores per step.
          mode: `TRAINING` or `INFERENCE`.
          master: `''` or `'local'` is the emulated system.
          optimization_parameters: of tables without their own; `None` in inference.
          cluster_def: anything but `None` is the emulated system too.
          pipeline_execution_with_tensor_core: look-ups run a step ahead of updates.
          partition_strategy: `'div'` or `'mod'`.
          profile_data_directory: written into the proto.
          device_config: a system of a stated size, instead of `master`.
          master_job_name: part of the names of hosts.

        Raises:
          ValueError: as the original does, in its order.
          ConfigError: for all else that is wrong, at once.
        """
        if partition_strategy not in ('div', 'mod'):
            raise ValueError('partition_strategy must be "div" or "mod". Received: '
                             f'{partition_strategy}.')
        _check_tables(table_to_config_dict, feature_to_config_dict)
        if master is None and cluster_def is None and device_config is None:
            raise ValueError('When master and cluster_def are both None,device_config must be set '
                             'but is not.')
        topology, job = _system(master, device_config, master_job_name)
        if batch_size % topology.num_cores:
            raise ValueError('`batch_size` is not a multiple of number of cores. `batch_size`='
                             f'{batch_size}, `_num_cores`={topology.num_cores}.')
        _check_mode(mode, optimization_parameters, table_to_config_dict)
        self._tables, self._features = table_to_config_dict, feature_to_config_dict
        self._hosts = [f'{job}/replica:0/task:{host}/device:CPU:0'
                       for host in range(topology.num_hosts)]
        self.optimization_parameters = (StochasticGradientDescentParameters(1.0)
                                        if mode == INFERENCE else optimization_parameters)
        tables, features = configs_to_specs(table_to_config_dict, feature_to_config_dict)
        self.plan: Plan = resolve(
            tables, features, topology, batch_size=batch_size, strategy=partition_strategy,
            mode='inference' if mode == INFERENCE else 'training',
            optimizer=optimization_parameters.to_optimizer() if optimization_parameters else None,
            pipelined=bool(pipeline_execution_with_tensor_core),
            profile_directory=profile_data_directory or '')
        self.config_proto = plan_to_config(self.plan)
        self.num_cores = topology.num_cores
        self.num_cores_per_host = topology.cores_per_host
        self.batch_size_per_core = self.plan.batch_size_per_core

    @property
    def hosts(self) -> list[str]:
        """The device strings of the hosts."""
        return list(self._hosts)

    @property
    def table_to_config_dict(self) -> dict[str, TableConfig]:
        """The tables, sorted by name."""
        return collections.OrderedDict(sorted(self._tables.items()))

    @property
    def feature_to_config_dict(self) -> dict[str, FeatureConfig]:
        """The features, sorted by name."""
        return collections.OrderedDict(sorted(self._features.items()))

    @property
    def table_to_features_dict(self) -> dict[str, list[str]]:
        """The names of each table's features, both sorted."""
        return collections.OrderedDict(
            (table.name, [feature.name for feature in self.plan.features_of(table.name)])
            for table in self.plan.tables)


def _check_tables(tables: Mapping[str, Any], features: Mapping[str, Any]) -> None:
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


def _system(master: str | None, device_config: DeviceConfig | None, master_job_name: str | None
            ) -> tuple[Topology, str]:
    """The topology, and the beginning of the device strings of its hosts."""
    if device_config is None:
        return topology_of(master, None, None), f'/job:{master_job_name or "localhost"}'
    hosts, cores = device_config.num_hosts, device_config.num_cores
    if cores % hosts:
        raise ValueError(f'num_hosts ({hosts}) should divide num_cores ({cores}) but does not.')
    return Topology(num_hosts=hosts, cores_per_host=cores // hosts), device_config.job_name


def _check_mode(mode: int, parameters: Any, tables: Mapping[str, TableConfig]) -> None:
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
