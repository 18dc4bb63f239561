"""Trains embeddings of the census data without an Estimator: TPUEmbedding and a session.

Predicts whether a person earns more than 50K a year from six words. A thread of its own reads
the file and enqueues ids and labels; the loop trains, evaluates on held-out rows, and saves.

  python census_handwritten_loop.py --model_dir=gs://bucket/census
"""

import os
import threading

import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_embedding
from tensorflow.python.tpu import tpu_embedding_gradient

HERE = os.path.dirname(os.path.abspath(__file__))

flags = tf.flags
flags.DEFINE_string('master', '', 'Address of the TPU system.')
flags.DEFINE_string('data', os.path.join(HERE, 'census', 'adult.csv.gz'), 'The census file.')
flags.DEFINE_string('model_dir', None, 'Where the checkpoint goes; nowhere if empty.')
flags.DEFINE_integer('train_steps', 300, 'Steps to train.')
flags.DEFINE_integer('eval_steps', 12, 'Steps to evaluate.')
flags.DEFINE_integer('batch_size', 512, 'Global batch size.')
flags.DEFINE_bool('pipelined', False, 'Look up a step ahead of updates.')
FLAGS = flags.FLAGS

COLUMNS = ['age', 'workclass', 'fnlwgt', 'education', 'education_num', 'marital_status',
           'occupation', 'relationship', 'race', 'sex', 'capital_gain', 'capital_loss',
           'hours_per_week', 'native_country', 'income']
WORDS = ['workclass', 'education', 'marital_status', 'occupation', 'relationship',
         'native_country']
BUCKETS = 64
HELD_OUT = 5  # every fifth row, from the first


def make_embedding():
  """Two tables: education and occupation share one, the other words share another."""
  shared = ('education', 'occupation')
  return tpu_embedding.TPUEmbedding(
      {'skill': tpu_embedding.TableConfig(BUCKETS, 8, combiner='sum'),
       'life': tpu_embedding.TableConfig(BUCKETS, 4, combiner='mean')},
      {word: tpu_embedding.FeatureConfig('skill' if word in shared else 'life')
       for word in WORDS},
      batch_size=FLAGS.batch_size,
      mode=tpu_embedding.TRAINING,
      master=FLAGS.master,
      optimization_parameters=tpu_embedding.AdagradParameters(0.1),
      pipeline_execution_with_tensor_core=FLAGS.pipelined)


def next_batch(is_training):
  """The ids of a global batch by word, -1 for an unknown one, and the labels."""

  def mine(rows):
    return tf.data.Dataset.from_tensor_slices(rows[1:] if is_training else rows[:1])

  def parse(lines):
    values = dict(zip(COLUMNS, tf.io.decode_csv(lines, [['']] * len(COLUMNS))))
    ids = {}
    for word in WORDS:
      hashed = tf.strings.to_hash_bucket_fast(values[word], BUCKETS)
      ids[word] = tf.where(tf.equal(values[word], ''), -tf.ones_like(hashed), hashed)
    return ids, tf.cast(tf.equal(values['income'], '>50K'), tf.float32)

  dataset = tf.data.TextLineDataset(FLAGS.data, compression_type='GZIP').skip(1)
  dataset = dataset.batch(HELD_OUT).flat_map(mine).batch(FLAGS.batch_size).map(parse)
  dataset = dataset.unbatch().cache().shuffle(4096, seed=1).repeat()
  batches = dataset.batch(FLAGS.batch_size, drop_remainder=True)
  return tf.data.make_one_shot_iterator(batches).get_next()


def enqueue_data(ids):
  """One core's ids of one word, without the unknown ones."""
  known = tf.where(ids[:, tf.newaxis] >= 0)  # [n, 2]: the sample, and place 0
  return tpu_embedding.EnqueueData(tf.gather(ids, known[:, 0]), known)


def enqueue_op(embedding, labels_queue, is_training):
  """What the thread runs once per step."""
  ids, labels = next_batch(is_training)
  cores = [tf.split(ids[word], embedding.num_cores) for word in WORDS]
  ops = embedding.generate_enqueue_ops(
      [{word: enqueue_data(of_core) for word, of_core in zip(WORDS, core)}
       for core in zip(*cores)],
      mode_override='train' if is_training else 'inference')
  return tf.group(labels_queue.enqueue(labels), *ops)


def logits_of(activations):
  with tf.variable_scope('model', reuse=tf.AUTO_REUSE):
    net = tf.concat([activations[word] for word in WORDS], 1)
    net = tf.layers.dense(net, 16, tf.nn.relu, name='hidden')
    return tf.squeeze(tf.layers.dense(net, 1, name='logits'), 1)


def loss_of(labels, logits):
  return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def make_train_step(embedding, labels_queue):
  """The loss of each core; whoever fetches it trains tables and model by one step."""

  def computation(labels):
    activations = embedding.get_activations()
    loss = loss_of(labels, logits_of(activations))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.005))
    train_op = optimizer.minimize(loss)
    gradients = tpu_embedding_gradient.get_gradients_through_compute_gradients(
        optimizer, loss, activations)
    with tf.control_dependencies([train_op, embedding.generate_send_gradients_op(gradients)]):
      return tf.reshape(loss, [1])

  return tf.tpu.shard(computation, [labels_queue.dequeue()], num_shards=embedding.num_cores)


def make_eval_step(embedding, labels_queue):
  """Labels and logits of a global batch."""
  return tf.tpu.shard(lambda labels: (labels, logits_of(embedding.get_activations())),
                      [labels_queue.dequeue()], num_shards=embedding.num_cores)


class Enqueuer:
  """Runs an operation again and again in a thread of its own."""

  def __init__(self, session, op, times):
    self._session, self._op, self._times = session, op, times
    self._error = None
    self._thread = threading.Thread(target=self._run, daemon=True)

  def _run(self):
    try:
      for _ in range(self._times):
        self._session.run(self._op)
    except Exception as error:  # pylint: disable=broad-except
      self._error = error
      self._session.close()  # Else the main thread would wait for the batch for ever.

  def __enter__(self):
    self._thread.start()
    return self

  def __exit__(self, kind, value, trace):
    self._thread.join()
    if self._error is not None:
      raise self._error


def main(_):
  tf.disable_v2_behavior()
  tf.set_random_seed(17)
  embedding = make_embedding()
  shape = [FLAGS.batch_size]
  train_labels, eval_labels = [
      tf.queue.FIFOQueue(2, [tf.float32], [shape]) for _ in range(2)]
  tables = embedding.create_variables_and_ops()
  train_enqueue = enqueue_op(embedding, train_labels, True)
  eval_enqueue = enqueue_op(embedding, eval_labels, False)
  train_step = make_train_step(embedding, train_labels)
  eval_step = make_eval_step(embedding, eval_labels)
  load, retrieve = tables.load_ops(), tables.retrieve_ops()
  saver = tf.train.Saver()
  labels, logits = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
  accuracy, update_accuracy = tf.metrics.accuracy(labels, logits > 0.)
  initializers = [tf.global_variables_initializer(), tf.local_variables_initializer()]

  with tf.Session(FLAGS.master) as session:
    session.run(tf.tpu.initialize_system(embedding_config=embedding.config_proto))
    session.run(initializers)
    session.run(load)
    with Enqueuer(session, train_enqueue, FLAGS.train_steps):
      for step in range(FLAGS.train_steps):
        loss, = session.run(train_step)
        if step % 100 == 0 or step + 1 == FLAGS.train_steps:
          print('step %d: loss %.4f' % (step + 1, loss.mean()))
    with Enqueuer(session, eval_enqueue, FLAGS.eval_steps):
      for _ in range(FLAGS.eval_steps):
        batch = session.run(eval_step)
        session.run(update_accuracy, dict(zip((labels, logits), batch)))
    print('accuracy %.4f' % session.run(accuracy))
    session.run(retrieve)
    if FLAGS.model_dir:
      print('saved', saver.save(session, os.path.join(FLAGS.model_dir, 'model.ckpt')))
    session.run(tf.tpu.shutdown_system())


if __name__ == '__main__':
  tf.app.run(main)
