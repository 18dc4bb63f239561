"""Trains a wide embedding model on the census data with TPUEstimator, predicts, and exports.

Predicts whether a person earns more than 50K a year. Education and occupation share one
embedding table, four other words have a table each, numbers go in as they are.
`serve_census.py` beside this file serves the export.

  python census_tpu_job.py --tpu=$TPU_NAME --model_dir=gs://bucket/census
"""

import os

import tensorflow.compat.v1 as tf
from tensorflow.compat.v1 import estimator as tf_estimator

HERE = os.path.dirname(os.path.abspath(__file__))

flags = tf.flags
flags.DEFINE_string('tpu', None, 'Name of the TPU, or its grpc address.')
flags.DEFINE_string('tpu_zone', None, 'Zone of the TPU.')
flags.DEFINE_string('gcp_project', None, 'Project of the TPU.')
flags.DEFINE_string('data', os.path.join(HERE, 'census', 'adult.csv.gz'), 'The census file.')
flags.DEFINE_string('model_dir', None, 'Where checkpoints go.')
flags.DEFINE_integer('train_steps', 600, 'Steps of the first training; the second adds half.')
flags.DEFINE_integer('train_batch_size', 512, 'Global batch size.')
flags.DEFINE_integer('eval_batch_size', 176, 'Global batch size of evaluation and prediction.')
flags.DEFINE_integer('iterations', 100, 'Steps per loop on the TPU.')
flags.DEFINE_integer('seed', 17, 'Random seed.')
flags.DEFINE_string('export_dir', None, 'Where the model is exported; nowhere if empty.')
flags.DEFINE_bool('disable_v2_behavior', False, 'Run as a plain TF1 program.')
FLAGS = flags.FLAGS

# name, default (which also says the type)
CSV = [('age', 0.), ('workclass', ''), ('fnlwgt', 0.), ('education', ''),
       ('education_num', 0.), ('marital_status', ''), ('occupation', ''), ('relationship', ''),
       ('race', ''), ('sex', ''), ('capital_gain', 0.), ('capital_loss', 0.),
       ('hours_per_week', 0.), ('native_country', ''), ('income', '')]
NUMBERS = ['age', 'education_num', 'capital_gain', 'capital_loss', 'hours_per_week']
WORDS = {
    'workclass': ['Private', 'Self-emp-not-inc', 'Local-gov', 'State-gov', 'Self-emp-inc',
                  'Federal-gov', 'Without-pay', 'Never-worked'],
    'education': ['Preschool', '1st-4th', '5th-6th', '7th-8th', '9th', '10th', '11th', '12th',
                  'HS-grad', 'Some-college', 'Assoc-voc', 'Assoc-acdm', 'Bachelors', 'Masters',
                  'Prof-school', 'Doctorate'],
    'occupation': ['?', 'Adm-clerical', 'Armed-Forces', 'Craft-repair', 'Exec-managerial',
                   'Farming-fishing', 'Handlers-cleaners', 'Machine-op-inspct',
                   'Other-service', 'Priv-house-serv', 'Prof-specialty', 'Protective-serv',
                   'Sales', 'Tech-support', 'Transport-moving'],
    'marital_status': ['Married-civ-spouse', 'Never-married', 'Divorced', 'Separated',
                       'Widowed', 'Married-spouse-absent', 'Married-AF-spouse'],
    'relationship': ['Husband', 'Not-in-family', 'Own-child', 'Unmarried', 'Wife',
                     'Other-relative'],
    'native_country': ['United-States', 'Mexico', 'Philippines', 'Germany', 'Canada',
                       'Puerto-Rico', 'El-Salvador', 'India', 'Cuba', 'England', 'Jamaica',
                       'South', 'China', 'Italy', 'Dominican-Republic', 'Vietnam'],
}
HELD_OUT = 5  # every fifth row, from the first
ROWS = 32561
EVAL_ROWS = (ROWS + HELD_OUT - 1) // HELD_OUT
SHARED_BUCKETS = 32


def make_columns():
  """Returns the embedding columns, which live on the TPU, and all columns."""
  shared = tf.tpu.experimental.shared_embedding_columns(
      [tf.feature_column.categorical_column_with_identity(key, SHARED_BUCKETS)
       for key in ('education', 'occupation')], dimension=8, combiner='sum')
  single = [
      tf.tpu.experimental.embedding_column(
          tf.feature_column.categorical_column_with_vocabulary_list(key, WORDS[key]),
          dimension=dimension)
      for key, dimension in (('workclass', 4), ('native_country', 4), ('marital_status', 4),
                             ('relationship', 4))]
  embeddings = shared + single
  return embeddings, embeddings + [tf.feature_column.numeric_column(key) for key in NUMBERS]


def scaled(values):
  """The numbers of a row, each between -1 and 1 or so."""
  return {
      'age': values['age'] / 40. - 1.,
      'education_num': values['education_num'] / 10. - 1.,
      'capital_gain': tf.log1p(values['capital_gain']) / 10.,
      'capital_loss': tf.log1p(values['capital_loss']) / 10.,
      'hours_per_week': values['hours_per_week'] / 40. - 1.,
  }


def id_table(key):
  """Word -> id. Unknown ones become -1."""
  return tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(
          WORDS[key], list(range(len(WORDS[key]))), key_dtype=tf.string, value_dtype=tf.int64),
      -1)


def make_dataset(is_training, batch_size, num_shards, shard, drop_remainder=True):
  """One shard's batches of the training rows, forever, or of the held-out ones."""
  tables = {key: id_table(key) for key in WORDS}  # The TPU takes ids.

  def parse(lines):
    values = dict(zip([name for name, _ in CSV],
                      tf.io.decode_csv(lines, [[default] for _, default in CSV])))
    features = {key: table.lookup(values[key]) for key, table in tables.items()}
    features.update(scaled(values))
    return features, tf.cast(tf.equal(values['income'], '>50K'), tf.float32)

  def mine(rows):
    return tf.data.Dataset.from_tensor_slices(rows[1:] if is_training else rows[:1])

  dataset = tf.data.TextLineDataset(FLAGS.data, compression_type='GZIP').skip(1)
  dataset = dataset.batch(HELD_OUT).flat_map(mine).shard(num_shards, shard).cache()
  if is_training:
    dataset = dataset.shuffle(ROWS, seed=FLAGS.seed).repeat()
  return dataset.batch(batch_size, drop_remainder=drop_remainder).map(
      parse, num_parallel_calls=2)


def make_input_fn(is_training, drop_remainder=True):
  """Returns an input_fn over the training rows or over the held-out ones."""

  def input_fn(params):
    _, index, num_hosts, _ = params['context'].current_input_fn_deployment()
    return make_dataset(is_training, params['batch_size'], num_hosts, index, drop_remainder)

  return input_fn


def serving_input_fn():
  """Takes rows as the file has them: words as words, numbers as they are."""
  rows = {name: tf.placeholder(tf.float32 if name in NUMBERS else tf.string, [None], name)
          for name in NUMBERS + list(WORDS)}
  # Columns with a vocabulary map words themselves; the two that share a table take ids.
  features = {key: id_table(key).lookup(rows[key]) if key in ('education', 'occupation')
              else rows[key] for key in WORDS}
  features.update(scaled(rows))
  return tf_estimator.export.ServingInputReceiver(features, rows)


def metric_fn(labels, logits):
  probability = tf.sigmoid(logits)
  return {
      'accuracy': tf.metrics.accuracy(labels, tf.cast(logits > 0., tf.float32)),
      'auc': tf.metrics.auc(labels, probability, num_thresholds=1000),
  }


def make_model_fn(columns):
  """Returns a model_fn over the columns."""

  def model_fn(features, labels, mode, params):
    del params
    init = tf.glorot_uniform_initializer()
    net = tf.keras.layers.DenseFeatures(columns)(features)
    net = tf.layers.dense(net, 64, activation=tf.nn.relu, kernel_initializer=init)
    net = tf.layers.dense(net, 32, activation=tf.nn.relu, kernel_initializer=init)
    logits = tf.squeeze(tf.layers.dense(net, 1, kernel_initializer=init), 1)
    if mode == tf_estimator.ModeKeys.PREDICT:
      return tf_estimator.tpu.TPUEstimatorSpec(
          mode=mode, predictions={'probability': tf.sigmoid(logits)})
    loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    train_op = None
    if mode == tf_estimator.ModeKeys.TRAIN:
      optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.002))
      train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf_estimator.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, logits]))

  return model_fn


def make_estimator(model_dir):
  """Returns the Estimator that trains in model_dir."""
  resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
      FLAGS.tpu, zone=FLAGS.tpu_zone, project=FLAGS.gcp_project)
  config = tf_estimator.tpu.RunConfig(
      cluster=resolver,
      model_dir=model_dir,
      tf_random_seed=FLAGS.seed,
      save_checkpoints_steps=300,
      tpu_config=tf_estimator.tpu.TPUConfig(
          iterations_per_loop=FLAGS.iterations,
          per_host_input_for_training=tf_estimator.tpu.InputPipelineConfig.PER_HOST_V2))
  embeddings, columns = make_columns()
  return tf_estimator.tpu.TPUEstimator(
      model_fn=make_model_fn(columns),
      config=config,
      train_batch_size=FLAGS.train_batch_size,
      eval_batch_size=FLAGS.eval_batch_size,
      predict_batch_size=FLAGS.eval_batch_size,
      embedding_config_spec=tf_estimator.tpu.experimental.EmbeddingConfigSpec(
          feature_columns=embeddings,
          optimization_parameters=tf.tpu.experimental.AdagradParameters(0.05)))


def main(_):
  tf.logging.set_verbosity(tf.logging.INFO)
  if FLAGS.disable_v2_behavior:
    tf.disable_v2_behavior()
  estimator = make_estimator(FLAGS.model_dir)
  eval_steps = EVAL_ROWS // FLAGS.eval_batch_size
  for max_steps in (FLAGS.train_steps, FLAGS.train_steps * 3 // 2):
    estimator.train(make_input_fn(True), max_steps=max_steps)
    results = estimator.evaluate(make_input_fn(False), steps=eval_steps)
    print('step %d: accuracy %.4f, auc %.4f, loss %.4f' % (
        results['global_step'], results['accuracy'], results['auc'], results['loss']))
  found = [row['probability'] for row in estimator.predict(make_input_fn(False, False))]
  print('predicted %d rows, mean probability %.5f' % (len(found), sum(found) / len(found)))
  if FLAGS.export_dir:
    path = estimator.export_saved_model(FLAGS.export_dir, serving_input_fn)
    print('exported', path.decode())


if __name__ == '__main__':
  tf.app.run(main)
