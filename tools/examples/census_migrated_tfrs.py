"""The job of `census_tpu_job.py` after its migration to the Keras layer of TFRS.

It takes over a checkpoint of that job, and trains on from it:

  etpe migrate checkpoint old/model.ckpt-300 new --to tfrs --map census_migrated_tfrs.map \
      --object-path model/layer_with_weights-0 --optimizer-path model/optimizer --slots midlevel
  etpe run census_migrated_tfrs.py --model_dir=new

`etpe migrate check py:census_migrated_tf2:old py:census_migrated_tfrs:new`, with the same options,
shows that both are the same job. The data and the tables are those of `census_migrated_tf2.py`.
"""

import tensorflow as tf
import tensorflow_recommenders as tfrs
from estimator_tpu_embedding.migration import KerasSide

import census_migrated_tf2 as data
import census_tpu_job as job

FLAGS = job.FLAGS


def make_model():
  """Makes and compiles the model; call it in the scope of the strategy."""
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
  model.compile(
      tf.keras.optimizers.legacy.Adam(.002, epsilon=1e-8),
      loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
      metrics=[tf.keras.metrics.BinaryAccuracy('accuracy', threshold=0.)])
  return model


def new():
  """This job, for `etpe migrate check`."""
  strategy = data.make_strategy()
  with strategy.scope():
    model = make_model()
  return KerasSide(tf.train.Checkpoint(model=model), model, data.distribute(strategy, True))


def main(_):
  strategy = data.make_strategy()
  with strategy.scope():
    model = make_model()
  manager = tf.train.CheckpointManager(
      tf.train.Checkpoint(model=model), FLAGS.model_dir, max_to_keep=2)
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
