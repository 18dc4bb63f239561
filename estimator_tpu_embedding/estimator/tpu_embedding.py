"""Holds `TPUEmbedding`, which looks tables up and trains them in loops written by hand."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import defaults
from ..core import optimizers
from ..core.optimizers import DynamicRate, Optimizer
from ..core.partition import STRATEGIES
from ..core.plan import Plan, resolve
from ..core.specs import TableSpec, Topology
from ..errors import ConfigError, Problem, UnsupportedError, quoted, shown
from ..hosts.placement import Placement, on
from ..proto.codec import Config, plan_to_config
from . import enqueue, tpu_addresses
from .graph_engine import GraphEngine
from .optimizer_parameters import StochasticGradientDescentParameters, _OptimizationParameters
from .table_config import DeviceConfig, FeatureConfig, TableConfig, configs_to_specs
from .tpu_context import topology_of

INFERENCE: int = Config.INFERENCE
TRAINING: int = Config.TRAINING


def _name_of_tuple(cls: type[Optimizer]) -> str:
    return 'FtrlSlotVariable' if cls is optimizers.Ftrl else f'{cls.__name__}SlotVariables'


_SLOTS: dict[type[Optimizer], str] = {  # in the order of `Optimizer.slots`
    optimizers.Adagrad: 'accumulator', optimizers.AdagradMomentum: 'accumulator momenta',
    optimizers.Adam: 'm v', optimizers.FrequencyEstimator: 'last_hit_step',
    optimizers.Ftrl: 'accumulator linear', optimizers.Momentum: 'momenta',
    optimizers.ProximalAdagrad: 'accumulator', optimizers.ProximalYogi: 'v m',
    optimizers.RMSProp: 'ms mom'}
SLOT_TUPLES: dict[str, Any] = {
    name: collections.namedtuple(name, slots, module=__name__)
    for cls, slots in _SLOTS.items() for name in (
        f'{cls.__name__}SlotVariableNames', _name_of_tuple(cls))}
"""By name, a tuple for each optimizer with the names of its slots, and one with their variables."""
globals().update(SLOT_TUPLES)  # Scripts import them, and pickles name them.


class VariablesAndOps(NamedTuple):
    """The result of `TPUEmbedding.create_variables_and_ops`.

    Attributes:
      embedding_variables_by_table: one variable per host, for each table.
      slot_variables_by_table: a tuple such as `AdagradSlotVariables` for each table. Its fields
        hold one variable per host. It is `None` for a table without slots. In inference a table
        has slots if it has an optimizer of its own. They are restored and saved, and never
        change.
      load_ops: makes the operations that hand the variables to the engine.
      retrieve_ops: makes the operations that bring the variables up to date.
    """

    embedding_variables_by_table: dict[str, list[Any]]
    slot_variables_by_table: dict[str, Any]
    load_ops: Any
    retrieve_ops: Any


def _check_tables(tables: Mapping[str, Any], features: Mapping[str, Any]) -> None:
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


def _check_mode(mode: int, parameters: Any, tables: Mapping[str, TableConfig]) -> None:
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


class TPUEmbedding:
    """Tables and features of one job on one system, and their look-ups in graphs.

    It is for training loops that are written by hand; a `TPUEstimator` does all of this itself.
    The variables of the tables hold the rows. `load_ops` and `retrieve_ops` copy nothing, and a
    value that is assigned to a variable counts from the next step on.

    Attributes:
      plan: the resolved tables, features and topology.
      config_proto: the `TPUEmbeddingConfiguration`, byte for byte as TensorFlow 2.15 makes it.
        Only learning-rate tags differ: they are numbered in order of appearance.
      batch_size_per_core: samples per core and step.
      num_cores: cores of all hosts.
      num_cores_per_host: cores of each host.
      optimization_parameters: the parameters of all tables without their own.

    >>> embedding = TPUEmbedding(
    ...     {'video': TableConfig(vocabulary_size=22, dimension=4)},
    ...     {'watched': FeatureConfig('video')}, batch_size=16, mode=INFERENCE,
    ...     device_config=DeviceConfig(num_hosts=4, num_cores=8, job_name='/job:worker'))
    >>> embedding.num_cores, embedding.num_cores_per_host, embedding.batch_size_per_core
    (8, 2, 2)
    >>> embedding.table_to_features_dict['video'], embedding.hosts[3]
    (['watched'], '/job:worker/replica:0/task:3/device:CPU:0')
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
          master: the name or address of a system, or `None`. All mean the emulated system, or
            the workers of this process. A line says that nothing is contacted.
          optimization_parameters: the optimizer of tables without their own; `None` in inference.
          cluster_def: not used.
          pipeline_execution_with_tensor_core: look-ups run a step ahead of updates.
          partition_strategy: `'div'` or `'mod'`.
          profile_data_directory: written into the proto.
          device_config: a system of a stated size, instead of `master`.
          master_job_name: part of the names of hosts.

        Raises:
          ValueError: as the original does, in its order.
          ConfigError: with all other problems at once.
        """
        if type(self) is TPUEmbedding and defaults.current().backend == 'tpu':
            from .tpu_ops_embedding import TpuOpsEmbedding
            self.__class__ = TpuOpsEmbedding  # Scripts call this class, also for a real TPU.
        if partition_strategy not in STRATEGIES:
            raise ValueError('partition_strategy must be "div" or "mod". Received: '
                             f'{partition_strategy}.')
        _check_tables(table_to_config_dict, feature_to_config_dict)
        topology = self._find_system(master, cluster_def, device_config, master_job_name)
        if batch_size % topology.num_cores:
            raise ValueError('`batch_size` is not a multiple of number of cores. `batch_size`='
                             f'{batch_size}, `_num_cores`={topology.num_cores}.')
        _check_mode(mode, optimization_parameters, table_to_config_dict)
        self._table_to_config_dict = table_to_config_dict
        self._feature_to_config_dict = feature_to_config_dict
        self.optimization_parameters = (StochasticGradientDescentParameters(1.0)
                                        if mode == INFERENCE else optimization_parameters)
        tables, features = configs_to_specs(table_to_config_dict, feature_to_config_dict)
        # Only the ids say whether they have weights.
        policy = defaults.current().id_policy
        features = [dataclasses.replace(feature, weight_feature=feature.name, id_policy=policy)
                    for feature in features]
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
        self._engines: dict[tf.Graph, GraphEngine] = {}

    def _find_system(self, master: str | None, cluster_def: Any,
                     device_config: DeviceConfig | None, job: str | None) -> Topology:
        """Returns the topology, and keeps the hosts and the processes that they are."""
        if device_config is None:
            tpu_addresses.announce_addresses('TPUEmbedding', master=master)
            topology, job = topology_of(master, None, None), f'/job:{job or "localhost"}'
        else:
            hosts, cores = device_config.num_hosts, device_config.num_cores
            if cores % hosts:
                raise ValueError(f'num_hosts ({hosts}) should divide num_cores ({cores}) but does '
                                 'not.')
            topology = Topology(num_hosts=hosts, cores_per_host=cores // hosts)
            job = device_config.job_name
        self._cluster = tpu_addresses.cluster_of_loop(master)
        if self._cluster and (problem := self._cluster.choice.hosts_problem(topology.num_hosts)):
            raise ConfigError(problem)
        self._placement = Placement(
            topology, is_remote=self._cluster is not None and self._cluster.is_remote)
        self._hosts = [self._placement.host(host) or f'{job}/replica:0/task:{host}/device:CPU:0'
                       for host in range(topology.num_hosts)]
        return topology

    @property
    def hosts(self) -> list[str]:
        """The device strings of the hosts; with workers those of their tasks, whatever the job."""
        return list(self._hosts)

    @property
    def table_to_config_dict(self) -> dict[str, TableConfig]:
        """The tables, sorted by name."""
        return collections.OrderedDict(sorted(self._table_to_config_dict.items()))

    @property
    def feature_to_config_dict(self) -> dict[str, FeatureConfig]:
        """The features, sorted by name."""
        return collections.OrderedDict(sorted(self._feature_to_config_dict.items()))

    @property
    def table_to_features_dict(self) -> dict[str, list[str]]:
        """The names of the features of each table, sorted."""
        return collections.OrderedDict(
            (table.name, [feature.name for feature in self.plan.features_of(table.name)])
            for table in self.plan.tables)

    @property
    def engine(self) -> GraphEngine:
        """The engine of the plan in the default graph; UnsupportedError without a graph."""
        with tf.init_scope():  # Out of the graphs of loops and functions.
            if tf.executing_eagerly():
                raise UnsupportedError(Problem(
                    'E917', 'TPUEmbedding', 'its operations need a graph', 'eager execution',
                    'Call tf.compat.v1.disable_v2_behavior(), or build them in "with '
                    'tf.Graph().as_default():".'))
            graph = tf.get_default_graph()
            if graph not in self._engines:
                self._engines[graph] = GraphEngine(
                    self.plan, None if self._cluster is None else self._placement)
                if self._cluster is not None:
                    tpu_addresses.place_tables(graph, self._cluster, self._placement, self.plan)
            return self._engines[graph]

    def create_variables_and_ops(
            self, embedding_variable_name_by_table: Mapping[str, str] | None = None,
            slot_variable_names_by_table: Mapping[str, Any] | None = None) -> VariablesAndOps:
        """Creates the variables of tables and slots in the default graph.

        Args:
          embedding_variable_name_by_table: names by table; `None` is the name of each table.
          slot_variable_names_by_table: a tuple such as `AdagradSlotVariableNames` by table;
            `None` is, for example, `<table>/Adagrad`. In inference a table has slots if it has
            optimization parameters of its own.

        Raises:
          KeyError: for a table without a name.
          ValueError: if there are variables of such names.
          ConfigError: if the names of slots belong to another optimizer than the table's.
        """
        names, slot_names = self._variable_names(embedding_variable_name_by_table,
                                                 slot_variable_names_by_table)
        engine = self.engine
        tables = engine.create_tables(names, slot_names)
        slots = {}
        for table in self.plan.tables:
            hosted = tables[table.name]
            parts = [self._one_per_host(name, values, table) for name, values in zip(
                slot_names[table.name], hosted.slots.values())]
            slots[table.name] = self._slot_tuple(table, parts)
        count = len(self.plan.tables) * self.plan.topology.num_hosts

        def retrieve_ops() -> list[tf.Operation]:
            with tf.control_dependencies([engine.retrieve()]):
                return [tf.no_op('retrieve_tpu_embedding_parameters') for _ in range(count)]

        return VariablesAndOps(
            {table.name: self._one_per_host(names[table.name], tables[table.name].rows, table)
             for table in self.plan.tables}, slots,
            load_ops=lambda: [tf.no_op('load_tpu_embedding_parameters') for _ in range(count)],
            retrieve_ops=retrieve_ops)

    def _variable_names(self, names: Mapping[str, str] | None, slots: Mapping[str, Any] | None
                        ) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Returns the names of the variables of tables and of their slots, given or by default."""
        return ({table.name: names[table.name] if names else table.name
                 for table in self.plan.tables},
                {table.name: _slot_names_of(table, slots) for table in self.plan.tables})

    @staticmethod
    def _slot_tuple(table: TableSpec, parts: Sequence[Any]) -> Any:
        """Returns the tuple of a table's optimizer, or `None` without slots."""
        if table.optimizer is None or not parts:
            return None
        return SLOT_TUPLES[_name_of_tuple(type(table.optimizer))](*parts)

    def _one_per_host(self, name: str, parts: Sequence[tf.Variable], table: TableSpec
                      ) -> list[tf.Variable]:
        """Returns the variables of a table or slot, with an unused one for each empty host."""
        hosts = range(len(parts), self.plan.topology.num_hosts)
        scope = tf.get_variable_scope().name
        full = f'{scope}/{name}' if scope else name
        with tf.name_scope(None):  # The scope is named after the host.
            return [*parts, *[tf.Variable(
                tf.zeros([1, table.dimension]), name=f'dummy_{host}_{full}', trainable=False,
                use_resource=True, collections=[tf.GraphKeys.LOCAL_VARIABLES])
                for host in hosts]]

    def generate_enqueue_ops(self, enqueue_datas_list: Sequence[enqueue.Datas],
                             mode_override: str | None = None, ragged: bool = False
                             ) -> list[tf.Operation]:
        """Returns operations that hand over the ids of one step, one per core.

        Each of them waits while two steps are in the queue.

        Args:
          enqueue_datas_list: `EnqueueData` or `RaggedEnqueueData` by feature, for each core.
          mode_override: `'train'`, `'inference'` or `'unspecified'`. It has no effect here,
            since only gradients that are sent change a table.
          ragged: whether the data are `RaggedEnqueueData`.

        Raises:
          ValueError: as the original does.
          InputError: for ids, indices or weights whose type or shape is wrong.
        """
        devices = enqueue.check_datas(enqueue_datas_list, list(self._feature_to_config_dict),
                                      self.num_cores_per_host)
        if mode_override not in (None, 'train', 'inference', 'unspecified'):
            raise ValueError(f'Unsupported value {mode_override} specified for mode_override.')
        if len(enqueue_datas_list) > self.num_cores:
            raise ValueError(f'`enqueue_datas_list` must have at most {self.num_cores} entries, '
                             f'one per core; got {len(enqueue_datas_list)}.')
        engine, operations = self.engine, []
        core_ids = enqueue.core_ids_of(self.plan)
        for core, datas in enumerate(enqueue_datas_list):
            with on(devices[core] or self._placement.client):
                operations.append(engine.enqueue(enqueue.to_batches(
                    self.plan, core_ids, datas, core=core, ragged=ragged), core=core))
        return operations

    def get_activations(self) -> dict[str, tf.Tensor]:
        """Takes the oldest ids that wait for this core, and looks them up.

        Call it in the computation of `tf.tpu.shard` or its kin; with one core, anywhere.

        Returns:
          The activations by feature, in the order of tables, then of features. Each is float32
          `[batch_size_per_core, D]`, or `[batch_size_per_core, L, D]` for a sequence.

        Raises:
          ConfigError: before `create_variables_and_ops`, or if there are more or fewer replicas
            than cores.
        """
        return collections.OrderedDict(self.engine.lookup())

    def generate_send_gradients_op(self, feature_to_gradient_dict: Mapping[str, tf.Tensor],
                                   step: Any = None) -> tf.Operation:
        """Returns an operation that trains the tables with the gradients of all cores.

        Args:
          feature_to_gradient_dict: the gradient of each activation; others are ignored.
          step: the argument of learning rates that are functions.

        Raises:
          RuntimeError: if the mode is not `TRAINING`.
          ValueError: if there is no step though a learning rate is a function.
          KeyError: for a feature without gradient.
          ConfigError: if `get_activations` was not called before.
        """
        if self.plan.mode != 'training':
            raise RuntimeError('Only in training mode gradients need to be sent to TPU '
                               f'embedding; got mode {INFERENCE}.')
        rates = [self.plan.rate(table.name) for table in self.plan.tables]
        if step is None and any(isinstance(rate, DynamicRate) for rate in rates):
            raise ValueError('There are dynamic learning rates but step is None.')
        gradients = {feature.name: feature_to_gradient_dict[feature.name]
                     for feature in self.plan.features}
        return self._send(gradients, step)

    def _send(self, gradients: dict[str, tf.Tensor], step: Any) -> tf.Operation:
        return self.engine.update(gradients, step)


def _slot_names_of(table: TableSpec, given: Mapping[str, Any] | None) -> list[str]:
    """Returns the names of the variables of a table's slots, in the order of its optimizer.

    They are those given by table, such as `AdagradSlotVariableNames`, or else the default names.

    Raises:
      KeyError: if the table is not there.
      ConfigError: if its tuple belongs to another optimizer.
    """
    names = given[table.name] if given else None
    optimizer = table.optimizer
    if optimizer is None or not optimizer.slots:
        return []
    if not given:
        return [f'{table.name}/{slot.suffix}' for slot in optimizer.slots]
    fields = _SLOTS[type(optimizer)].split()
    if not all(isinstance(getattr(names, field, None), str) for field in fields):
        raise ConfigError(Problem(
            'E927', f'slot_variable_names_by_table["{table.name}"]', 'it must name the slots of '
            f'{optimizer.field}: {quoted(fields)}', shown(repr(names)),
            f'Give a {type(optimizer).__name__}SlotVariableNames, or leave out the argument.'))
    return [getattr(names, field) for field in fields]
