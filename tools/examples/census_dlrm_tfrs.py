"""Trains a DLRM of TensorFlow Recommenders on the census data, and exports it.

Predicts whether a person earns more than 50K a year. Each of eight words has an embedding
table on the TPU, five numbers go through the bottom network, and the products of all pairs of
these vectors go through the top one. The script trains and evaluates under TPUStrategy and
saves a checkpoint. Then it makes the model again under no strategy, restores the checkpoint,
and exports a SavedModel, which takes rows as the file has them. At last it serves the held-out
rows from that. `serve_census.py` beside this file serves the export, too.

  python census_dlrm_tfrs.py --tpu=$TPU_NAME --model_dir=gs://bucket/dlrm
"""

import argparse
import csv
import gzip
import os

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ['age', 'workclass', 'fnlwgt', 'education', 'education_num', 'marital_status',
           'occupation', 'relationship', 'race', 'sex', 'capital_gain', 'capital_loss',
           'hours_per_week', 'native_country', 'income']
NUMBERS = ['age', 'education_num', 'capital_gain', 'capital_loss', 'hours_per_week']
WORDS = ['workclass', 'education', 'marital_status', 'occupation', 'relationship', 'race',
         'sex', 'native_country']
BUCKETS = 256  # of each table
WIDTH = 8  # of all tables and of the bottom network: their products need equal ones
HELD_OUT = 5  # every fifth row, from the first
ROWS = 32561
EVAL_ROWS = (ROWS + HELD_OUT - 1) // HELD_OUT

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument('--tpu', default='', help='Name of the TPU, or its grpc address.')
parser.add_argument('--data', default=os.path.join(HERE, 'census', 'adult.csv.gz'))
parser.add_argument('--model_dir', required=True, help='Where the checkpoint and the export go.')
parser.add_argument('--train_steps', type=int, default=600)
parser.add_argument('--batch_size', type=int, default=512, help='Of all replicas together.')
parser.add_argument('--seed', type=int, default=17)
args = parser.parse_args()


def make_features(values):
  """What the model takes: ids of words, and numbers between -1 and 1 or so.

  Args:
    values: word columns of strings and number columns of floats, each [rows].
  """
  scaled = [values['age'] / 40. - 1., values['education_num'] / 10. - 1.,
            tf.math.log1p(values['capital_gain']) / 10.,
            tf.math.log1p(values['capital_loss']) / 10., values['hours_per_week'] / 40. - 1.]
  return {'dense_features': tf.stack(scaled, 1),
          'sparse_features': {word: tf.strings.to_hash_bucket_fast(values[word], BUCKETS)
                              for word in WORDS}}


def distribute(strategy, is_training):
  """Batches of (features, labels): the training rows forever, or the held-out ones once."""

  def parse(lines):
    defaults = [[0.] if name in NUMBERS else [''] for name in COLUMNS]
    values = dict(zip(COLUMNS, tf.io.decode_csv(lines, defaults)))
    return make_features(values), tf.cast(values['income'] == '>50K', tf.float32)

  def mine(rows):
    return tf.data.Dataset.from_tensor_slices(rows[1:] if is_training else rows[:1])

  def dataset_fn(context):
    dataset = tf.data.TextLineDataset(args.data, compression_type='GZIP').skip(1)
    dataset = dataset.batch(HELD_OUT).flat_map(mine).shard(
        context.num_input_pipelines, context.input_pipeline_id)
    if is_training:
      dataset = dataset.cache().shuffle(ROWS, seed=args.seed).repeat()
    batch_size = context.get_per_replica_batch_size(args.batch_size)
    return dataset.batch(batch_size, drop_remainder=True).map(parse, num_parallel_calls=2)

  # Ids stay on the host, which passes them to the tables.
  return strategy.distribute_datasets_from_function(
      dataset_fn, tf.distribute.InputOptions(experimental_fetch_to_device=False))


def make_model(optimizer):
  """A DLRM whose tables are trained by `optimizer`, or by nothing if it is None."""
  embedding = tf.tpu.experimental.embedding
  tables = {word: embedding.TableConfig(BUCKETS, WIDTH, name=word) for word in WORDS}
  return tfrs.experimental.models.Ranking(
      embedding_layer=tfrs.layers.embedding.TPUEmbedding(
          {word: embedding.FeatureConfig(table) for word, table in tables.items()}, optimizer),
      bottom_stack=tfrs.layers.blocks.MLP([32, WIDTH], final_activation='relu'),
      feature_interaction=tfrs.layers.feature_interaction.DotInteraction(),
      top_stack=tfrs.layers.blocks.MLP([64, 32, 1], final_activation='sigmoid'))


def train():
  """Trains, evaluates and saves; returns the checkpoint and the held-out probabilities."""
  resolver = tf.distribute.cluster_resolver.TPUClusterResolver(args.tpu)
  tf.config.experimental_connect_to_cluster(resolver)
  tf.tpu.experimental.initialize_tpu_system(resolver)
  strategy = tf.distribute.TPUStrategy(resolver)
  tf.keras.utils.set_random_seed(args.seed)
  with strategy.scope():
    model = make_model(tf.tpu.experimental.embedding.Adagrad(.05))
    model.compile(tf.keras.optimizers.legacy.Adam(.002), steps_per_execution=50)
  model.fit(distribute(strategy, True), steps_per_epoch=args.train_steps, verbose=0)
  steps = EVAL_ROWS // args.batch_size
  results = model.evaluate(distribute(strategy, False), steps=steps, verbose=0, return_dict=True)
  print('step %d: accuracy %.4f, auc %.4f' % (
      model.optimizer.iterations.numpy(), results['accuracy'], results['auc']))
  probabilities = model.predict(distribute(strategy, False), steps=steps, verbose=0)
  path = tf.train.Checkpoint(model=model).save(os.path.join(args.model_dir, 'ckpt'))
  print('saved', path)
  return path, probabilities


def export(path):
  """Exports the model of a checkpoint; returns the folder."""
  model = make_model(None)  # No strategy: look-ups on the CPU, which any server can do.

  @tf.function(input_signature=[{
      **{name: tf.TensorSpec([None], tf.float32, name) for name in NUMBERS},
      **{name: tf.TensorSpec([None], tf.string, name) for name in WORDS}}])
  def serve(rows):
    # `Ranking` drops dimensions of size 1, so it must not get a single row.
    rows = {name: tf.concat([column, column[:1]], 0) for name, column in rows.items()}
    return {'probability': model(make_features(rows))[:-1]}

  signature = serve.get_concrete_function()  # It makes the variables, and restoring fills them.
  tf.train.Checkpoint(model=model).restore(
      path).assert_existing_objects_matched().expect_partial()
  folder = os.path.join(args.model_dir, 'export')
  tf.saved_model.save(model, folder, signatures={'serving_default': signature})
  print('exported', folder)
  return folder


def serve_rows(folder, rows):
  """The probabilities of rows from the file."""
  serve = tf.saved_model.load(folder).signatures['serving_default']
  numbers = {name: tf.constant([float(row[name]) for row in rows]) for name in NUMBERS}
  words = {name: tf.constant([row[name] for row in rows]) for name in WORDS}
  return serve(**numbers, **words)['probability'].numpy()


def main():
  path, probabilities = train()
  folder = export(path)
  with gzip.open(args.data, 'rt') as file:
    rows = list(csv.DictReader(file))[::HELD_OUT]
  served = serve_rows(folder, rows)
  right = (served > .5) == [row['income'] == '>50K' for row in rows]
  print('served %d rows, accuracy %.4f' % (len(rows), right.mean()))
  # Replicas read rows in turns, so their answers come in an order of their own.
  same = np.isclose(np.sort(served[:len(probabilities)]), np.sort(probabilities), atol=1e-5)
  print('%d of %d as predicted before; a single row: %s' % (
      same.sum(), len(probabilities),
      np.isclose(serve_rows(folder, rows[:1]), served[:1]).all()))


if __name__ == '__main__':
  main()
