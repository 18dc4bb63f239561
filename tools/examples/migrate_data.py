"""The data of the two `migrate_*.py` jobs: made-up clicks, the same ones for both.

A row has two features of words and a number:

  sparse_feature_a: one to three words of 100, split by blanks
  sparse_feature_b: one word of 20, or none
  dense_feature: a number

Whether a row was clicked depends on all three. Words become ids by hashing, in the input
pipeline: a TPU takes ids only.
"""

import numpy as np
import tensorflow as tf

WORDS_A, WORDS_B = 100, 20
BUCKETS = {'sparse_feature_a': 256, 'sparse_feature_b': 64}
WIDTHS = {'sparse_feature_a': 8, 'sparse_feature_b': 4}
COMBINERS = {'sparse_feature_a': 'mean', 'sparse_feature_b': 'sum'}
HIDDEN = 16
LEARNING_RATE, INITIAL_ACCUMULATOR = .05, .001
TRAIN_ROWS, EVAL_ROWS = 6400, 1600
BATCH_SIZE = 64  # of all replicas
STEPS_PER_LOOP = 50  # that the TPU makes before it reports to its host
EVAL_STEPS = EVAL_ROWS // BATCH_SIZE


def make_rows():
  """All rows: words of a, words of b, numbers, and labels."""
  random = np.random.RandomState(5)
  rows = TRAIN_ROWS + EVAL_ROWS
  weight_a, weight_b = random.normal(size=WORDS_A), random.normal(size=WORDS_B)
  some_a = [random.randint(WORDS_A, size=random.randint(1, 4)) for _ in range(rows)]
  some_b = [random.randint(WORDS_B, size=random.randint(2)) for _ in range(rows)]
  numbers = random.normal(size=rows).astype(np.float32)
  score = numbers + [2 * weight_a[a].mean() + weight_b[b].sum() for a, b in zip(some_a, some_b)]
  labels = (score > 0).astype(np.float32)
  return ([' '.join('a%d' % word for word in words) for words in some_a],
          [' '.join('b%d' % word for word in words) for words in some_b], numbers, labels)


def to_ids(words, feature):
  """Words, split by blanks, as a SparseTensor of ids with a line per row."""
  return tf.strings.to_hash_bucket_fast(tf.strings.split(words), BUCKETS[feature]).to_sparse()


def make_dataset(is_training, batch_size, num_shards, shard):
  """One shard's batches of (features, labels). Training goes on forever."""

  def parse(a, b, number, label):
    return {'sparse_feature_a': to_ids(a, 'sparse_feature_a'),
            'sparse_feature_b': to_ids(b, 'sparse_feature_b'),
            'dense_feature': number[:, tf.newaxis]}, label[:, tf.newaxis]

  rows = make_rows()
  mine = slice(0, TRAIN_ROWS) if is_training else slice(TRAIN_ROWS, None)
  dataset = tf.data.Dataset.from_tensor_slices(tuple(column[mine] for column in rows))
  dataset = dataset.shard(num_shards, shard)
  if is_training:
    dataset = dataset.repeat()
  return dataset.batch(batch_size, drop_remainder=True).map(parse)


def make_kernels():
  """Where the two dense layers begin. TensorFlow 1 and 2 draw different random numbers."""
  random = np.random.RandomState(6)
  inputs = sum(WIDTHS.values()) + 1
  return (random.normal(scale=inputs ** -.5, size=[inputs, HIDDEN]).astype(np.float32),
          random.normal(scale=HIDDEN ** -.5, size=[HIDDEN, 1]).astype(np.float32))
