"""Builds the operations of a TPU's embedding engine for a plan; they compute on the TPU alone.

Operations, attributes and devices are those of TensorFlow 2.15. The golden summaries in
`tests/golden/tpu_graphs.json` come from there. The engine finds the tables in the serialized
config of the plan, which the operations carry.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..core import optimizers
from ..core.optimizers import rate_tags
from ..core.plan import Plan
from ..core.specs import TableSpec

ALGORITHMS: dict[type[optimizers.Optimizer], tuple[str, str]] = {
    optimizers.Adagrad: ('Adagrad', 'accumulators'),
    optimizers.AdagradMomentum: ('AdagradMomentum', 'accumulators momenta'),
    optimizers.Adam: ('ADAM', 'momenta velocities'),
    optimizers.FrequencyEstimator: ('FrequencyEstimator', 'last_hit_step'),
    optimizers.Ftrl: ('FTRL', 'accumulators linears'),
    optimizers.Momentum: ('Momentum', 'momenta'),
    optimizers.ProximalAdagrad: ('ProximalAdagrad', 'accumulators'),
    optimizers.ProximalYogi: ('ProximalYogi', 'v m'),
    optimizers.RMSProp: ('RMSProp', 'ms mom'),
    optimizers.StochasticGradientDescent: ('StochasticGradientDescent', '')}
"""By optimizer a part of the names of operations, and their arguments for slots."""


def partitioned(name: str, table: TableSpec, hosts: Sequence[str],
                initializer: Callable[..., Any] | None) -> list[tf.Variable]:
    """Creates the variables of a table or slot, one per host and on its device.

    A host without rows gets a local variable of one row, since the engine wants one of each host.

    Args:
      name: the variables are `<name>/part_<host>`, in the current scope.
      table: has the number of rows and their width.
      hosts: the devices of the hosts.
      initializer: of the rows; `None` takes TensorFlow's default.

    Raises:
      ValueError: if a variable of this name exists.
    """
    rows = table.vocabulary_size
    with tf.device(lambda operation: _device_of(operation.name, hosts)):
        parts = list(tf.get_variable(
            name, (rows, table.dimension), tf.float32, initializer, trainable=False,
            partitioner=tf.fixed_size_partitioner(min(rows, len(hosts))),
            collections=[tf.GraphKeys.GLOBAL_VARIABLES]))
        return parts + [tf.get_variable(
            f'dummy_{host}_{name}', (1, table.dimension), tf.float32, initializer,
            trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
            for host in range(rows, len(hosts))]


def _device_of(operation: str, hosts: Sequence[str]) -> str:
    found = (re.findall(r'/part_(\d+)(?=/|$)', operation)
             or re.findall(r'dummy_(\d+)', operation))
    return hosts[int(found[-1])]


def load(plan: Plan, table: TableSpec, host: int, values: Sequence[tf.Variable], config: bytes
         ) -> tf.Operation:
    """Returns the operation that hands the rows and slots of one host to the engine.

    `values` are the variables of the rows and of each slot. `config` is that of the plan for the
    first operation of a graph, and empty for the others.
    """
    algorithm, slots = _algorithm_of(table)
    with tf.colocate_with(values[0]):
        return getattr(tf.raw_ops, f'LoadTPUEmbedding{algorithm}Parameters')(
            **dict(zip(('parameters', *slots), values)), **_shard(plan, table, host, config))


def retrieve(plan: Plan, table: TableSpec, host: int, values: Sequence[tf.Variable], config: bytes
             ) -> tf.Operation:
    """Returns the operation that assigns what the engine holds; the arguments are as in `load`."""
    algorithm, _ = _algorithm_of(table)
    with tf.colocate_with(values[0]):
        got = getattr(tf.raw_ops, f'RetrieveTPUEmbedding{algorithm}Parameters')(
            **_shard(plan, table, host, config))
        got = [got] if isinstance(got, tf.Tensor) else got
        return tf.group(*[tf.assign(*pair) for pair in zip(values, got)])


def _algorithm_of(table: TableSpec) -> tuple[str, list[str]]:
    algorithm, slots = ALGORITHMS[
        optimizers.StochasticGradientDescent if table.optimizer is None else type(table.optimizer)]
    return algorithm, slots.split()


def _shard(plan: Plan, table: TableSpec, host: int, config: bytes) -> dict[str, Any]:
    return {'table_name': table.name, 'num_shards': plan.topology.num_hosts, 'shard_id': host,
            'config': config}


def enqueue(plan: Plan, datas: Mapping[str, Any], core: int, mode: str | None, *, ragged: bool
            ) -> tf.Operation:
    """Returns the operation that hands the ids of one core to the engine.

    Args:
      plan: declares the features.
      datas: by feature a tuple of ids, sample indices or row splits, and weights, as the original
        `EnqueueData` and `RaggedEnqueueData` have them. `None` stands for what is left out.
      core: the number of the core on its host.
      mode: overrides the mode of the config; `None` does not.
      ragged: whether the second members are row splits.
    """
    samples, ids, weights = [], [], []
    with tf.colocate_with(next(iter(datas.values()))[0]):
        no_samples, no_weights = tf.zeros([0], tf.int64), tf.zeros([0], tf.float32)
        for feature in plan.features:
            its_ids, where, its_weights = datas[feature.name]
            if not ragged:
                where = _sample_indices(where, is_sequence=bool(feature.max_sequence_length))
            samples.append(no_samples if where is None else where)
            ids.append(its_ids)
            weights.append(no_weights if its_weights is None else its_weights)
        return tf.raw_ops.EnqueueTPUEmbeddingArbitraryTensorBatch(
            sample_indices_or_row_splits=samples, embedding_indices=ids,
            aggregation_weights=weights, mode_override=mode or 'unspecified', device_ordinal=core,
            combiners=[plan.table(feature.table).combiner or 'sum' for feature in plan.features])


def _sample_indices(indices: Any, *, is_sequence: bool) -> Any:
    """Returns indices as the engine takes them; `None` says that the k-th id is of sample k."""
    if indices is None or indices.shape.rank != 2:
        return indices
    width = indices.shape.dims[1].value
    if width == 1:
        return None
    # The engine reduces the last place; that of a sequence tells its rows apart.
    return tf.pad(indices, [[0, 0], [0, 1]]) if is_sequence and width == 2 else indices


def receive(plan: Plan, config: bytes) -> dict[str, tf.Tensor]:
    """Returns the activations of every feature, on the core whose replica is being built."""
    outputs = tf.raw_ops.RecvTPUEmbeddingActivations(
        num_outputs=len(plan.features), config=config)
    return collections.OrderedDict(zip((feature.name for feature in plan.features), outputs))


def send(plan: Plan, gradients: Sequence[tf.Tensor], step: Any, config: bytes) -> tf.Operation:
    """Returns the operation that trains the tables on the core whose replica is being built.

    Args:
      plan: declares features and learning rates.
      gradients: of the activations, in the order of the plan.
      step: the argument of learning rates that are functions.
      config: that of the plan.
    """
    tags = rate_tags(plan.rate(table.name) for table in plan.tables)
    return tf.raw_ops.SendTPUEmbeddingGradients(
        inputs=gradients, config=config,
        learning_rates=[tf.cast(rate.function(step), tf.float32) for rate in tags])
