"""Holds the `TPUEmbedding` of a real TPU, whose methods build the operations of its engine."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf, defaults
from ..core.names import DUMMY
from ..core.specs import Topology
from ..errors import UnsupportedError, counted, shown
from ..hosts import tpu_ops, tpu_system
from ..runner.gradient_capture import DUMMY_COLLECTION
from ..runner.progress import announce
from . import enqueue
from .table_config import DeviceConfig
from .tpu_embedding import TPUEmbedding, VariablesAndOps

_GRADIENTS = 'tpu_embedding_gradients_table_'
"""Collections where TensorFlow's gradient of `TPUEmbeddingActivations` puts what it is given."""

_Tensors = dict[str, tf.Tensor]


def metadata_of(master: str, cluster_def: Any = None, query_topology: bool = False,
                job: str | None = None) -> Any:
    """Returns the `TPUSystemMetadata` of the TPU at an address, or of one that is made up.

    Raises:
      UnsupportedError: if no TPU answers.
    """
    choices = defaults.current()
    if choices.graph_only is not None:
        return tpu_system.made_up(choices.system.topology, job)
    problem = tpu_system.problem_of(master, cluster_def)
    if problem is not None:
        raise UnsupportedError(problem)
    found = _tf.tpu_metadata(master, cluster_def, query_topology)
    announce(f'TPU at {shown(repr(master)) if master else "this machine"}: '
             f'{counted(found.num_hosts, "host")} x '
             f'{counted(found.num_of_cores_per_host, "core")}')
    return found


class TpuOpsEmbedding(TPUEmbedding):
    """The `TPUEmbedding` of the graphs of a real TPU.

    `load_ops` and `retrieve_ops` copy rows and slots between the variables on the hosts and the
    memory of the TPU. Otherwise it is used as its base class, which says what arguments mean.
    """

    def _find_system(self, master: str | None, cluster_def: Any,
                     device_config: DeviceConfig | None, job: str | None) -> Topology:
        if device_config is not None:
            return super()._find_system(master, cluster_def, device_config, job)
        system = metadata_of(master or '', cluster_def, job=job)
        job = job or _tf.job_of_tpu(master, cluster_def)
        self._cluster = None
        self._hosts = [device.name for device in system.devices if 'device:CPU:' in device.name
                       and (not job or job in device.name)]
        return Topology(num_hosts=system.num_hosts, cores_per_host=system.num_of_cores_per_host)

    @property
    def _config(self) -> bytes:
        return self.config_proto.SerializeToString()

    def create_variables_and_ops(
            self, embedding_variable_name_by_table: Mapping[str, str] | None = None,
            slot_variable_names_by_table: Mapping[str, Any] | None = None) -> VariablesAndOps:
        """See the base class."""
        names, slot_names = self._variable_names(embedding_variable_name_by_table,
                                                 slot_variable_names_by_table)
        tables, slots = {}, {}
        for table in self.plan.tables:
            tables[table.name] = tpu_ops.partitioned(
                names[table.name], table, self._hosts, table.initializer)
            made = [] if table.optimizer is None else [
                tpu_ops.partitioned(name, table, self._hosts,
                                    tf.constant_initializer(slot.initial_value))
                for name, slot in zip(slot_names[table.name], table.optimizer.slots)]
            slots[table.name] = self._slot_tuple(table, made)

        def each(build: Callable[..., tf.Operation]) -> list[tf.Operation]:
            configs = iter([self._config])  # The first operation tells the engine of all tables.
            return [build(self.plan, table, host, values, next(configs, b''))
                    for table in self.plan.tables for host, values in enumerate(
                        zip(tables[table.name], *(slots[table.name] or ())))]

        return VariablesAndOps(tables, slots, load_ops=lambda: each(tpu_ops.load),
                               retrieve_ops=lambda: each(tpu_ops.retrieve))

    def generate_enqueue_ops(self, enqueue_datas_list: Sequence[enqueue.Datas],
                             mode_override: str | None = None, ragged: bool = False
                             ) -> list[tf.Operation]:
        """See the base class; `mode_override` is passed on."""
        enqueue.check_datas(enqueue_datas_list, list(self._feature_to_config_dict),
                            self.num_cores_per_host)
        return [tpu_ops.enqueue(self.plan, datas, core % self.num_cores_per_host, mode_override,
                                ragged=ragged)
                for core, datas in enumerate(enqueue_datas_list)]

    def get_activations(self) -> _Tensors:
        """Returns the activations by feature; call it once, in a replica's computation."""
        return tpu_ops.receive(self.plan, self._config)

    def _send(self, gradients: _Tensors, step: Any) -> tf.Operation:
        return tpu_ops.send(self.plan, list(gradients.values()), step, self._config)

    def create_dummies(self) -> dict[str, tf.Variable]:
        """Creates the dummy variable of each table, and room for the gradients of activations.

        Raises:
          RuntimeError: if the graph has such gradients.
        """
        for index, table in enumerate(self.plan.tables):
            if _gradients(index):
                raise RuntimeError(f'{_GRADIENTS}{index} is not empty.')
            _gradients(index).extend([None] * len(self.plan.features_of(table.name)))
        return collections.OrderedDict((table.name, tf.get_variable(
            f'{DUMMY}{table.name}', [1], tf.float32, use_resource=True, trainable=True,
            collections=[DUMMY_COLLECTION])) for table in self.plan.tables)

    def hook(self, activations: Mapping[str, tf.Tensor], dummies: Mapping[str, tf.Variable]
             ) -> _Tensors:
        """Returns the activations, made to depend on the dummy variables."""
        return collections.OrderedDict(
            (feature.name, tf.raw_ops.TPUEmbeddingActivations(
                embedding_variable=dummies[table.name],
                sliced_activations=activations[feature.name], table_id=index, lookup_id=place))
            for index, table in enumerate(self.plan.tables)
            for place, feature in enumerate(self.plan.features_of(table.name)))

    def gradients(self) -> _Tensors:
        """Returns the gradients of the hooked activations; zeros, with a warning, for none."""
        found = collections.OrderedDict()
        for index, table in enumerate(self.plan.tables):
            features = self.plan.features_of(table.name)
            for feature, gradient in zip(features, _gradients(index), strict=True):
                if gradient is None:
                    tf.logging.warning(
                        'Table %s with id %d has undefined gradients: feature "%s" has none, and '
                        'zeros are sent', table.name, index, feature.name)
                    gradient = tf.zeros(self.plan.output_shape(feature))
                found[feature.name] = gradient
        return found


def _gradients(table: int) -> list[Any]:
    found: list[Any] = tf.get_default_graph().get_collection_ref(f'{_GRADIENTS}{table}')
    return found
