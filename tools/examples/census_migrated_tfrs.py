"""The job of `census_tpu_job.py` after its migration to the Keras layer of TFRS.

It trains on from the newest checkpoint in model_dir. The first one there is a migrated checkpoint
of the old job, whose variables have got the names in `census_migrated_tfrs.map`. Data and tables
are those of `census_migrated_tf2.py`.

  python census_migrated_tfrs.py --tpu=$TPU_NAME --model_dir=new
"""

import tensorflow as tf
import tensorflow_recommenders as tfrs

import census_migrated_tf2 as data
import census_tpu_job as job

FLAGS = job.FLAGS


def make_model(strategy):
  """Returns the compiled model, and a checkpoint of it."""
  with strategy.scope():
    words = {word: tf.keras.Input([None], FLAGS.train_batch_size, word, tf.int64, sparse=True)
             for word in job.WORDS}
    numbers = {name: tf.keras.Input([1], FLAGS.train_batch_size, name) for name in job.NUMBERS}
    embedding = tfrs.layers.embedding.TPUEmbedding(
        data.make_feature_config(), tf.tpu.experimental.embedding.Adagrad(.05))
    values = {**embedding(words), **numbers}
    net = tf.keras.layers.Concatenate()([values[name] for name in data.ORDER])
    net = tf.keras.layers.Dense(64, 'relu')(net)
    net = tf.keras.layers.Dense(32, 'relu')(net)
    model = tf.keras.Model((words, numbers), tf.keras.layers.Dense(1)(net))
    # Keras has another default of epsilon than tf.train.AdamOptimizer.
    model.compile(
        tf.keras.optimizers.legacy.Adam(.002, epsilon=1e-8),
        loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[tf.keras.metrics.BinaryAccuracy('accuracy', threshold=0.)])
  return model, tf.train.Checkpoint(model=model)


def main(_):
  strategy = data.make_strategy()
  model, checkpoint = make_model(strategy)
  manager = tf.train.CheckpointManager(checkpoint, FLAGS.model_dir, max_to_keep=2)
  print('begins with', manager.restore_or_initialize())
  steps = FLAGS.train_steps - model.optimizer.iterations.numpy()
  model.fit(data.distribute(strategy, True), steps_per_epoch=steps, verbose=0)
  results = model.evaluate(data.distribute(strategy, False), verbose=0, return_dict=True,
                           steps=job.EVAL_ROWS // FLAGS.train_batch_size)
  step = model.optimizer.iterations.numpy()
  print('step %d: accuracy %.4f' % (step, results['accuracy']))
  print('saved', manager.save(step))


if __name__ == '__main__':
  tf.compat.v1.app.run(main)
