"""A backend whose steps are the operations of a TPU's embedding engine, computed by our kernels."""

import types

import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.hosts import tpu_ops
from estimator_tpu_embedding.hosts.backend import LookupReceipt
from estimator_tpu_embedding.hosts.table_parts import create_tables
from estimator_tpu_embedding.native import tpu_kernels
from estimator_tpu_embedding.proto.codec import plan_to_config


class Backend:
    """Has what the conformance suite uses of `hosts.backend.Backend`."""

    def __init__(self, plan, variable_names, global_step):
        tpu_kernels.register()
        self.plan, self._step = plan, global_step
        self._config = plan_to_config(plan).SerializeToString()
        self.tables = create_tables(plan, variable_names)
        # A table has a row on every host of a TPU. What a plan has no row for is zeros.
        hosts = plan.topology.num_hosts
        self._shards = {
            name: [[*parts, *[tf.Variable(tf.zeros([1, table.spec.dimension]), trainable=False)
                              for _ in range(len(parts), hosts)]]
                   for parts in (table.rows, *table.slots.values())]
            for name, table in self.tables.items()}
        self.engine = types.SimpleNamespace(open=tf.no_op, load=self._load)

    def _load(self):
        with tf.control_dependencies([
                tf.raw_ops.ConfigureDistributedTPU(embedding_config=self._config)]):
            return self._each(tpu_ops.load)

    def _each(self, build):
        return tf.group(*[
            build(self.plan, self.plan.table(name), host, values, self._config)
            for name, shards in self._shards.items() for host, values in enumerate(zip(*shards))])

    def close(self):
        return tf.raw_ops.ShutdownDistributedTPU()

    def retrieve(self):
        return self._each(tpu_ops.retrieve)

    def enqueue(self, batch, *, core):
        return tpu_ops.enqueue(self.plan, {
            feature.name: self._data(feature, batch[feature.name])
            for feature in self.plan.features}, core, None, ragged=False)

    def _data(self, feature, batch):
        """Ids, their indices in a SparseTensor, and weights."""
        samples, length = tf.cast(batch.samples, tf.int64), feature.max_sequence_length
        where = [samples // length, samples % length] if length else [
            samples, tf.zeros_like(samples)]
        return batch.ids, tf.stack(where, 1), batch.weights

    def lookup(self, *, core):
        step = tf.identity(self._step)
        with tpu_kernels.on_core(core), tf.control_dependencies([step]):
            activations = tpu_ops.receive(self.plan, self._config)
        return activations, LookupReceipt(step, (), activations)

    def update(self, receipts, gradients):
        """Returns that no gradients were refused: the kernels fail instead."""
        sent = []
        for core, (receipt, own) in enumerate(zip(receipts, gradients)):
            with tpu_kernels.on_core(core), tf.control_dependencies(
                    list(receipt.activations.values())):
                sent.append(tpu_ops.send(
                    self.plan, [own[feature.name] for feature in self.plan.features],
                    receipt.step, self._config))
        with tf.control_dependencies(sent):
            return tf.zeros([len(self.plan.tables)], tf.bool)
