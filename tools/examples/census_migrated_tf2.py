"""The job of `census_tpu_job.py` after its migration: TensorFlow 2, TPUEmbedding, its own loop.

It trains on from the newest checkpoint in model_dir. The first one there is a migrated checkpoint
of the old job, whose variables have got the names in `census_migrated_tf2.map`.

  python census_migrated_tf2.py --tpu=$TPU_NAME --model_dir=new
"""

import tensorflow as tf

import census_tpu_job as job

FLAGS = job.FLAGS
api = tf.tpu.experimental.embedding
# DenseFeatures sorts its columns by their names, such as `education_shared_embedding`.
ORDER = ['age', 'capital_gain', 'capital_loss', 'education_num', 'education', 'hours_per_week',
         'marital_status', 'native_country', 'occupation', 'relationship', 'workclass']


def make_strategy():
  resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu or '')
  tf.config.experimental_connect_to_cluster(resolver)
  tf.tpu.experimental.initialize_tpu_system(resolver)
  return tf.distribute.TPUStrategy(resolver)


def make_feature_config():
  """What `make_columns` declares. The tables have their names in the config of the old job."""
  shared = api.TableConfig(job.SHARED_BUCKETS, 8, combiner='sum',
                           name='tbl_education_occupation_shared_embedding')
  own = {word: api.TableConfig(len(job.WORDS[word]), 4, combiner='mean', name='tbl_' + word)
         for word in job.WORDS if word not in ('education', 'occupation')}
  return {word: api.FeatureConfig(own.get(word, shared)) for word in job.WORDS}


def known_ids(ids, size):
  """The ids of a batch without those of unknown words, which are -1 and have no row."""
  known = tf.where(ids >= 0)
  return tf.SparseTensor(
      tf.concat([known, tf.zeros_like(known)], 1), tf.gather_nd(ids, known), [size, 1])


def distribute(strategy, is_training):
  """Batches of ((words, numbers), labels), the same as in the old job, for all replicas."""

  def dataset_fn(context):
    size = context.get_per_replica_batch_size(FLAGS.train_batch_size)

    def parse(features, labels):
      words = {word: known_ids(features[word], size) for word in job.WORDS}
      numbers = {name: features[name][:, tf.newaxis] for name in job.NUMBERS}
      return (words, numbers), labels[:, tf.newaxis]

    return job.make_dataset(
        is_training, size, context.num_input_pipelines, context.input_pipeline_id).map(parse)

  tf.random.set_seed(FLAGS.seed)  # As tf_random_seed of the RunConfig, for the same order.
  # Ids stay on the host, which passes them to the tables.
  return strategy.distribute_datasets_from_function(
      dataset_fn, tf.distribute.InputOptions(experimental_fetch_to_device=False))


class Trainer:
  """The model, its tables, and what trains both."""

  def __init__(self):
    self.strategy = make_strategy()
    with self.strategy.scope():
      self.embedding = api.TPUEmbedding(make_feature_config(), api.Adagrad(.05))
      self.model = tf.keras.Sequential([
          tf.keras.layers.Dense(64, 'relu'), tf.keras.layers.Dense(32, 'relu'),
          tf.keras.layers.Dense(1)])
      self.model.build([None, 37])
      # Keras has another default of epsilon than tf.train.AdamOptimizer.
      self.optimizer = tf.keras.optimizers.legacy.Adam(.002, epsilon=1e-8)
    self.checkpoint = tf.train.Checkpoint(
        embedding=self.embedding, model=self.model, optimizer=self.optimizer)

  @tf.function
  def train(self, batch):
    """Makes one step."""
    (words, numbers), labels = batch
    self.embedding.enqueue(words, training=True)
    self.strategy.run(self._train_replica, (numbers, labels))

  def _train_replica(self, numbers, labels):
    activations = self.embedding.dequeue()
    with tf.GradientTape() as tape:
      tape.watch(activations)
      loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
          labels, self._logits(activations, numbers))) / self.strategy.num_replicas_in_sync
    of_tables, of_model = tape.gradient(loss, (activations, self.model.trainable_variables))
    self.embedding.apply_gradients(of_tables)
    self.optimizer.apply_gradients(zip(of_model, self.model.trainable_variables))

  def _logits(self, activations, numbers):
    values = {**activations, **numbers}
    return self.model(tf.concat([values[name] for name in ORDER], 1))

  @tf.function
  def count_right(self, batch):
    """Returns how many samples of a batch get the right answer."""
    (words, numbers), labels = batch
    self.embedding.enqueue(words, training=False)

    def of_replica(numbers, labels):
      logits = self._logits(self.embedding.dequeue(), numbers)
      return tf.reduce_sum(tf.cast(tf.equal(logits > 0., labels > .5), tf.float32))

    return self.strategy.reduce(
        'SUM', self.strategy.run(of_replica, (numbers, labels)), axis=None)


def main(_):
  trainer = Trainer()
  manager = tf.train.CheckpointManager(trainer.checkpoint, FLAGS.model_dir, max_to_keep=2)
  print('begins with', manager.restore_or_initialize())
  for batch in distribute(trainer.strategy, True):
    if trainer.optimizer.iterations >= FLAGS.train_steps:
      break
    trainer.train(batch)
  steps = job.EVAL_ROWS // FLAGS.train_batch_size
  held_out = iter(distribute(trainer.strategy, False))
  right = sum(float(trainer.count_right(next(held_out))) for _ in range(steps))
  step = trainer.optimizer.iterations.numpy()
  print('step %d: accuracy %.4f' % (step, right / steps / FLAGS.train_batch_size))
  print('saved', manager.save(step))


if __name__ == '__main__':
  tf.compat.v1.app.run(main)
