"""A small job in its TF1 form and in its TF2 form, and forms with a mistake, for `migrate check`.

The features `watched`, which is weighted, and `liked` share the table `video` [6, 2]; `who` has the
table `user` [5, 2]. The loss of a sample is the sum of its activations times a dense variable.
"""

import functools
import os
import signal
import sys
import time
import types

import numpy as np
import tensorflow as tf

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.migration import EstimatorSide

BATCH, STEPS = 4, 3
ROWS = {'video': 6, 'user': 5}
TABLES = {'watched': 'video', 'liked': 'video', 'who': 'user'}
COMBINERS = {'video': 'sum', 'user': 'mean'}
RATES = {'video': .1, 'user': .5}
DENSE_RATE = .25
api = tf.tpu.experimental.embedding


def drawn(seed=1):
    """Ids of all samples by feature, [samples, 2], -1 for none; and weights of `watched`."""
    random = np.random.default_rng(seed)
    ids = {name: random.integers(-1, ROWS[table], size=[BATCH * STEPS, 2])
           for name, table in TABLES.items()}
    return ids, random.uniform(.5, 1.5, size=[BATCH * STEPS, 2]).astype(np.float32)


def dataset(batch, hosts=1, index=0, seed=1, samples=BATCH * STEPS):
    """Batches of ({feature: ids}, weights of `watched`), the part of one host."""
    ids, weights = drawn(seed)

    def own(array):
        return array[:samples].reshape(-1, hosts, BATCH // hosts, 2)[:, index].reshape(-1, 2)

    def parse(ids, weights):
        cells = {name: tf.where(one >= 0) for name, one in ids.items()}
        sparse = {name: tf.SparseTensor(cells[name], tf.gather_nd(one, cells[name]), [batch, 2])
                  for name, one in ids.items()}
        return sparse, sparse['watched'].with_values(tf.gather_nd(weights, cells['watched']))

    made = tf.data.Dataset.from_tensor_slices(
        ({name: own(one) for name, one in ids.items()}, own(weights)))
    return made.batch(batch, drop_remainder=True).map(parse)


def loss_of(activations, dense, scale, cores=1):
    return scale / cores * tf.reduce_mean(tf.add_n([
        tf.linalg.matvec(activations[name], dense) for name in TABLES]))


def old(strategy='div', scale=1.):
    """The TF1 form."""

    def make_estimator(model_dir):
        config = ete.RunConfig(
            cluster=ete.TPUClusterResolver(), model_dir=model_dir, tf_random_seed=1,
            save_summary_steps=0, log_step_count_steps=None, checkpoint_save_graph_def=False,
            tpu_config=ete.TPUConfig(
                iterations_per_loop=2,
                per_host_input_for_training=ete.InputPipelineConfig.PER_HOST_V2))
        spec = ete.EmbeddingConfigSpec(
            feature_to_config_dict={
                name: ete.FeatureConfig(table, weight_key='weights' * (name == 'watched') or None)
                for name, table in TABLES.items()},
            table_to_config_dict={
                name: ete.TableConfig(rows, 2, combiner=COMBINERS[name],
                                      learning_rate=RATES[name])
                for name, rows in ROWS.items()},
            optimization_parameters=ete.AdamParameters(.1), partition_strategy=strategy)
        return ete.TPUEstimator(
            model_fn, model_dir, config, train_batch_size=BATCH, embedding_config_spec=spec)

    def model_fn(features, labels, mode, params):
        v1 = tf.compat.v1
        dense = v1.get_variable('dense', [2], initializer=tf.ones_initializer())
        loss = loss_of(features, dense, scale)
        optimizer = ete.CrossShardOptimizer(v1.train.GradientDescentOptimizer(DENSE_RATE))
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
            loss, v1.train.get_global_step()))

    def input_fn(params):
        _, index, hosts, _ = params['context'].current_input_fn_deployment()
        return dataset(params['batch_size'], hosts, index).map(
            lambda ids, weights: {**ids, 'weights': weights})

    return EstimatorSide(make_estimator, input_fn)


class New:
    """The TF2 form, which reads the checkpoint of the TF1 form by itself."""

    def __init__(self, rates=RATES, combiners=COMBINERS, epsilon=1e-8, scale=1., weighted=True,
                 permuted=False, dense_rate=DENSE_RATE, rows=ROWS, names=None, seed=1,
                 samples=BATCH * STEPS, before_step=lambda: None):
        """Takes the mistakes."""
        self._tables = {name: api.TableConfig(
            rows[name], 2, combiner=combiners[name], name=name,
            optimizer=api.Adam(rates[name], epsilon=epsilon)) for name in rows}
        self._names = {name: (names or {}).get(name, name) for name in TABLES}
        self._embedding = api.TPUEmbedding({
            self._names[name]: api.FeatureConfig(self._tables[table])
            for name, table in TABLES.items()}, None)
        self._dense = tf.Variable(tf.ones([2]))
        self._scale, self._weighted, self._permuted = scale, weighted, permuted
        self._dense_rate, self._before_step = dense_rate, before_step
        self._dataset = functools.partial(dataset, BATCH, seed=seed, samples=samples)

    def train(self, checkpoint, steps):
        """Trains from a checkpoint of the TF1 form."""
        self._embedding.build()
        reader = tf.train.load_checkpoint(checkpoint)
        for name, table in self._tables.items():
            value = np.resize(reader.get_tensor(name), [table.vocabulary_size, 2])
            if self._permuted and name == 'video':
                value = value[[0, 1, 2, 3, 5, 4]]
            self._embedding.embedding_tables[table].assign(value)
        self._dense.assign(reader.get_tensor('dense'))
        for batch in self._dataset().take(steps):
            self._before_step()
            self.step(*batch)

    @tf.function
    def step(self, ids, weights):
        """Trains one step."""
        self._embedding.enqueue(
            {self._names[name]: one for name, one in ids.items()},
            {self._names[name]: weights if name == 'watched' and self._weighted else None
             for name in ids}, training=True)
        activations = self._embedding.dequeue()
        with tf.GradientTape() as tape:
            tape.watch(activations)
            loss = loss_of({name: activations[own] for name, own in self._names.items()},
                           self._dense, self._scale)
        *of_tables, of_dense = tape.gradient(
            loss, [*[activations[own] for own in self._names.values()], self._dense])
        self._embedding.apply_gradients(dict(zip(self._names.values(), of_tables)))
        self._dense.assign_sub(self._dense_rate * of_dense)


def fail():
    raise ValueError('the data are gone')


MISTAKES = {
    'none': {}, 'other_rate': {'rates': {'video': .2, 'user': .5}},
    'other_rate_of_user': {'rates': {'video': .1, 'user': .6}},
    'default_epsilon': {'epsilon': 1e-7, 'scale': 1e-6}, 'tiny': {'scale': 1e-6},
    'permuted': {'permuted': True}, 'missing_weight': {'weighted': False},
    'other_combiner': {'combiners': {'video': 'sum', 'user': 'sum'}},
    'other_dense_rate': {'dense_rate': .3}, 'other_batches': {'seed': 2},
    'other_rows': {'rows': {'video': 6, 'user': 6}}, 'other_names': {'names': {'who': 'person'}},
    'few_batches': {'samples': 2 * BATCH}, 'fails': {'before_step': fail},
    'hangs': {'before_step': lambda: time.sleep(600)},
    'killed': {'before_step': lambda: os.kill(os.getpid(), signal.SIGKILL)}}

new = types.SimpleNamespace(**{
    name: functools.partial(New, **mistake) for name, mistake in MISTAKES.items()})
olds = types.SimpleNamespace(
    div=old, mod=functools.partial(old, 'mod'), tiny=functools.partial(old, scale=1e-6))

if __name__ == '__main__':
    ete.install()
    side = old()
    side.make_estimator(sys.argv[1]).train(side.input_fn, steps=1)
