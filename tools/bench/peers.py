"""Runs the embedding engines of other packages, for `engine.py`.

    python peers.py {fbgemm-rowwise|fbgemm-exact|torch|tfrs} WORKLOAD SHRINK

* `fbgemm-rowwise` is the CPU table-batched embedding of fbgemm-gpu-cpu with rowwise Adagrad. It
  keeps one number of state per row, where the others keep one per element.
* `fbgemm-exact` is the same with the Adagrad of the others. Neither checks ids, and both get ids
  and offsets that were made before the step.
* `torch` is `torch.nn.EmbeddingBag(sparse=True)` with Adagrad.
* `tfrs` is the `TPUEmbedding` layer of tensorflow-recommenders on a CPU.

The loss is the halved sum of squares of the activations. These engines have no queue, so there is
no `ahead`.
"""

import functools
import os
import sys
import time

os.environ['TF_USE_LEGACY_KERAS'] = '1'  # TFRS needs it.

import numpy as np  # noqa: E402
from workloads import ACCUMULATOR, RATE, START, WORKLOADS, serve  # noqa: E402


class Peer:
    """A function of the ids of a step, timed by windows."""

    def __init__(self, workload, train, tables, prepare=lambda ids: ids):
        """Times `train(prepare(ids by feature))`, without the time of `prepare`.

        Args:
          tables: functions without arguments that return the rows of each.
        """
        self._feeds = [prepare(ids) for ids in workload.feeds()]
        self._train, self._number, self._tables = train, 0, tables

    def window(self, kind, steps):
        """See `sessions.Engine.window`."""
        del kind
        began = time.perf_counter()
        for _ in range(steps):
            self._train(self._feeds[self._number % len(self._feeds)])
            self._number += 1
        return 1e3 * (time.perf_counter() - began) / steps

    def rows(self):
        """The rows of each table: float32."""
        return [table() for table in self._tables]


def fbgemm(kind, workload):
    """Makes one call for all features, as fbgemm expects: ids and offsets, feature by feature.

    Args:
      kind: of Adagrad, `'ROWWISE_'` or `''`.
      workload: see `workloads.py`.
    """
    import torch
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
        BoundsCheckMode,
        EmbeddingLocation,
        PoolingMode,
    )
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        SplitTableBatchedEmbeddingBagsCodegen,
    )
    bags = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, width, EmbeddingLocation.HOST, ComputeDevice.CPU)
         for rows, width in workload.tables],
        feature_table_map=[feature.table for feature in workload.features],
        optimizer=EmbOptimType[f'EXACT_{kind}ADAGRAD'], learning_rate=RATE,
        bounds_check_mode=BoundsCheckMode.NONE,
        pooling_mode={'sum': PoolingMode.SUM, 'mean': PoolingMode.MEAN}[workload.combiner])
    tables = bags.split_embedding_weights()
    for rows in tables:
        rows.fill_(START)
    for of_table in bags.split_optimizer_states():
        for slot in of_table:
            slot.fill_(ACCUMULATOR)
    lengths = np.concatenate([np.full(workload.batch, feature.per_sample)
                              for feature in workload.features])
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))

    def train(ids):
        out = bags(ids, offsets)
        out.backward(out.detach())

    return Peer(workload, train, [rows.numpy for rows in tables],
                lambda ids: torch.from_numpy(np.concatenate(ids)))


def torch_bags(workload):
    """Makes one bag per table; features of one table are called one after the other."""
    import torch
    bags = [torch.nn.EmbeddingBag.from_pretrained(
        torch.full(shape, START), freeze=False, mode=workload.combiner, sparse=True)
            for shape in workload.tables]
    optimizer = torch.optim.Adagrad([bag.weight for bag in bags], lr=RATE,
                                    initial_accumulator_value=ACCUMULATOR)

    def train(ids):
        optimizer.zero_grad()
        outs = [bags[feature.table](torch.from_numpy(one).view(workload.batch, -1))
                for one, feature in zip(ids, workload.features)]
        torch.autograd.backward(outs, [out.detach() for out in outs])
        optimizer.step()

    return Peer(workload, train, [bag.weight.detach().numpy for bag in bags])


def tfrs(workload):
    """Calls the layer in a `tf.function`, outside of any TPU strategy."""
    import tensorflow as tf
    import tensorflow_recommenders
    of = tf.tpu.experimental.embedding
    tables = [of.TableConfig(rows, width, combiner=workload.combiner, name=f't{k:02}',
                             initializer=tf.constant_initializer(START))
              for k, (rows, width) in enumerate(workload.tables)]
    layer = tensorflow_recommenders.layers.embedding.TPUEmbedding(
        [of.FeatureConfig(tables[feature.table]) for feature in workload.features],
        tf.keras.optimizers.legacy.Adagrad(RATE, ACCUMULATOR))
    optimizer = tf.keras.optimizers.legacy.Adagrad(RATE, ACCUMULATOR)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            outs = layer([tf.RaggedTensor.from_uniform_row_length(one, feature.per_sample)
                          for one, feature in zip(ids, workload.features)])
            loss = tf.add_n([tf.nn.l2_loss(out) for out in outs])
        variables = layer.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    return Peer(workload, step, [
        functools.partial(lambda table: layer.embedding_tables[table].numpy(), table)
        for table in tables], lambda ids: [tf.constant(one) for one in ids])


if __name__ == '__main__':
    _, peer, name, shrink = sys.argv
    of_peer = {'fbgemm-rowwise': functools.partial(fbgemm, 'ROWWISE_'),
               'fbgemm-exact': functools.partial(fbgemm, ''), 'torch': torch_bags, 'tfrs': tfrs}
    chosen = WORKLOADS[name].shrunk(int(shrink))
    serve(of_peer[peer](chosen), chosen)
