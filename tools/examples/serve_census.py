"""Serves what `census_tpu_job.py` or `census_dlrm_tfrs.py` exported, with plain TensorFlow.

  python serve_census.py EXPORTED_DIRECTORY [FILE]

Scores every fifth row of the census file, those that were held out, and prints how many there
are, their mean probability and the accuracy.
"""

import csv
import gzip
import os
import sys

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
HELD_OUT = 5
BATCH = 500


def main(exported, path=os.path.join(HERE, 'census', 'adult.csv.gz')):
  """Loads the model and scores the rows."""
  serve = tf.saved_model.load(exported, tags=['serve']).signatures['serving_default']
  inputs = serve.structured_input_signature[1]
  with gzip.open(path, 'rt') as file:
    rows = list(csv.DictReader(file))[::HELD_OUT]
  probabilities = []
  for first in range(0, len(rows), BATCH):
    part = rows[first:first + BATCH]
    columns = {name: [row[name] for row in part] for name in inputs}
    probabilities.extend(serve(**{
        name: tf.constant(values if inputs[name].dtype == tf.string else list(map(float, values)))
        for name, values in columns.items()})['probability'].numpy())
  right = sum((probability > .5) == (row['income'] == '>50K')
              for probability, row in zip(probabilities, rows))
  print('served %d rows, mean probability %.5f, accuracy %.4f' % (
      len(rows), sum(probabilities) / len(rows), right / len(rows)))


if __name__ == '__main__':
  main(*sys.argv[1:])
