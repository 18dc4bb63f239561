"""A small job in its TF1 form and in its TF2 form, and forms with a mistake, for `migrate check`.

The features `watched`, which has weights, and `liked` share the table `video` [6, 2]; `who` has the
table `user` [7, 2], whose last two rows nothing looks up. The loss of a sample is its label times
the sum of its activations, each times a dense variable.

    python -m harness.agreement_job FOLDER FORM

makes a checkpoint of a TF1 form after two steps, and those after each further step.
"""

import functools
import os
import pathlib
import signal
import sys
import time
import types

import numpy as np
import tensorflow as tf

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.midlevel import TPUEmbedding
from estimator_tpu_embedding.migration import EstimatorSide, LoopSide

BATCH, STEPS, SAMPLES = 4, 3, 12
ROWS = {'video': 6, 'user': 7}
DRAWN = {'video': 6, 'user': 5}
TABLES = {'watched': 'video', 'liked': 'video', 'who': 'user'}
COMBINERS = {'video': 'sum', 'user': 'mean'}
RATES = {'video': .1, 'user': .5}
DENSE_RATE = .25
MAP = 'dense -> dense\n'
api = tf.tpu.experimental.embedding


def drawn(seed, wrong_label):
    """Ids of all samples by feature, [samples, 2], -1 for none; weights of `watched`; labels.

    There is one batch more than usual.
    """
    random, samples = np.random.default_rng(seed), SAMPLES + BATCH
    ids = {name: random.integers(-1, DRAWN[table], size=[samples, 2])
           for name, table in TABLES.items()}
    weights = random.uniform(.5, 1.5, size=[samples, 2]).astype(np.float32)
    labels = random.uniform(1, 2, size=[samples]).astype(np.float32)
    labels[BATCH + 1] += wrong_label
    return ids, weights, labels


def dataset(batch, hosts=1, index=0, seed=1, samples=SAMPLES, wrong_label=0.):
    """Batches of ((ids by feature, weights of `watched`), labels), the part of one host."""

    def own(array):
        shape = [-1, hosts, BATCH // hosts, *array.shape[1:]]
        return array[:samples].reshape(shape)[:, index].reshape([-1, *array.shape[1:]])

    def parse(ids, weights, labels):
        cells = {name: tf.where(one >= 0) for name, one in ids.items()}
        sparse = {name: tf.SparseTensor(cells[name], tf.gather_nd(one, cells[name]), [batch, 2])
                  for name, one in ids.items()}
        values = tf.gather_nd(weights, cells['watched'])
        return (sparse, sparse['watched'].with_values(values)), labels

    made = tf.data.Dataset.from_tensor_slices(
        tf.nest.map_structure(own, drawn(seed, wrong_label)))
    return made.batch(batch, drop_remainder=True).map(parse)


def loss_of(activations, labels, dense):
    return tf.reduce_mean(labels * tf.add_n([
        tf.linalg.matvec(activations[name], dense) for name in TABLES]))


def old(strategy='div', hosts=None, cores=None, pipelined=False):
    """The TF1 form."""

    def make_estimator(model_dir):
        config = ete.RunConfig(
            cluster=ete.TPUClusterResolver(hosts=hosts, cores=cores), model_dir=model_dir,
            tf_random_seed=1, save_summary_steps=0, log_step_count_steps=None,
            checkpoint_save_graph_def=False, tpu_config=ete.TPUConfig(
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
            optimization_parameters=ete.AdamParameters(.1), partition_strategy=strategy,
            pipeline_execution_with_tensor_core=pipelined)
        return ete.TPUEstimator(
            model_fn, model_dir, config, train_batch_size=BATCH, embedding_config_spec=spec)

    def model_fn(features, labels, mode, params):
        v1 = tf.compat.v1
        dense = v1.get_variable('dense', [2], initializer=tf.ones_initializer())
        loss = loss_of(features, labels, dense)
        optimizer = ete.CrossShardOptimizer(v1.train.GradientDescentOptimizer(DENSE_RATE))
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
            loss, v1.train.get_global_step()))

    def input_fn(params):
        _, index, hosts, _ = params['context'].current_input_fn_deployment()
        return dataset(params['batch_size'], hosts, index).map(
            lambda words, labels: ({**words[0], 'weights': words[1]}, labels))

    return EstimatorSide(make_estimator, input_fn)


def installing():
    """The same in a module that restores TensorFlow's names by itself."""
    ete.install()
    return old()


def new(*, rates=RATES, combiners=COMBINERS, weighted=True, rows=ROWS, dense_rate=DENSE_RATE,
        pipelined=False, before_step=lambda tables: None, **of_data):
    """The TF2 form; the arguments are the mistakes that it may have."""
    tables = {name: api.TableConfig(rows[name], 2, combiner=combiners[name], name=name,
                                    optimizer=api.Adam(rates[name], epsilon=1e-8))
              for name in rows}
    embedding = TPUEmbedding(
        {name: api.FeatureConfig(tables[table]) for name, table in TABLES.items()}, None, pipelined)
    dense = tf.Variable(tf.ones([2]))

    @tf.function
    def step(ids, weights, labels):
        embedding.enqueue(
            ids, {name: weights if name == 'watched' and weighted else None for name in ids})
        activations = embedding.dequeue()
        with tf.GradientTape() as tape:
            tape.watch(activations)
            loss = loss_of(activations, labels, dense)
        of_tables, of_dense = tape.gradient(loss, (activations, dense))
        embedding.apply_gradients(of_tables)
        dense.assign_sub(dense_rate * of_dense)

    def train(batch):
        before_step({name: embedding.embedding_tables[table] for name, table in tables.items()})
        (ids, weights), labels = batch
        step(ids, weights, labels)

    embedding.build()
    return LoopSide(tf.train.Checkpoint(embedding=embedding, dense=dense),
                    dataset(BATCH, **of_data), train)


def fail(tables):
    raise ValueError('the data are gone')


def permute(tables):
    tables['video'].assign(tf.gather(tables['video'], [0, 1, 2, 3, 5, 4]))


def write_elsewhere(tables):
    """Changes a row that nothing looks up."""
    tables['user'].assign(tf.tensor_scatter_nd_add(tables['user'], [[6]], [[1., 0.]]))


class Unsaved:
    """A side of a user's own that saves nothing."""

    def train(self, checkpoint, steps, folder):
        """Trains."""


OLD = types.SimpleNamespace(
    div=old, installing=installing, mod=functools.partial(old, 'mod', 2, 2),
    pipelined=functools.partial(old, pipelined=True))
NEW = types.SimpleNamespace(**{name: functools.partial(new, **mistake) for name, mistake in {
    'right': {}, 'few_batches': {'samples': 2 * BATCH},
    'other_rate': {'rates': {'video': .2, 'user': .5}}, 'wrong_label': {'wrong_label': .5},
    'other_data': {'seed': 2}, 'fails': {'before_step': fail},
    'hangs': {'before_step': lambda tables: time.sleep(600)},
    'killed': {'before_step': lambda tables: os.kill(os.getpid(), signal.SIGKILL)},
    'ends': {'before_step': lambda tables: os._exit(0)}}.items()})


def main(folder, form):
    """Trains a TF1 form."""
    ete.install(checkpoint=ete.CheckpointOptions(follow_pointer=True))
    own, side = pathlib.Path(folder), getattr(OLD, form)()
    side.make_estimator(str(own / 'model')).train(side.input_fn, steps=2)
    for steps in range(1, STEPS + 1):
        (own / f'{steps}').mkdir()
        side.train(str(own / 'model' / 'model.ckpt-2'), steps, str(own / f'{steps}'))


if __name__ == '__main__':
    main(*sys.argv[1:])
