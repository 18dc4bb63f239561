"""Input, which is the same in both versions."""
import tensorflow as tf

SCHEMA = {'id': tf.io.FixedLenFeature([], tf.int64)}


def read(files):
    records = tf.data.TFRecordDataset(files)
    iterator = tf.data.Iterator.from_structure(records.output_types)  # expect: I302 tensorflow.data.Iterator.from_structure
    return iterator.get_next()


def parse(text):
    return tf.parse_single_example(text, SCHEMA)  # expect: I302 tensorflow.parse_single_example
