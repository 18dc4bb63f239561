"""TensorFlow 0.12: queues, the old names of summaries, `tf.mul` and `tf.pack`."""
# run: etpe run --tf1
# stops: tensorflow.mul
import csv
import os
import tempfile

import tensorflow as tf
from six.moves import xrange

folder = tempfile.mkdtemp()
path = os.path.join(folder, 'points.csv')
with open(path, 'w') as out:
    csv.writer(out).writerows([i, 2 * i] for i in xrange(8))

queue = tf.train.string_input_producer([path])  # expect: I302 tensorflow.train.string_input_producer
reader = tf.TextLineReader()  # expect: I302 tensorflow.TextLineReader
_, line = reader.read(queue)
a, b = tf.decode_csv(line, [[0.0], [0.0]])  # expect: I302 tensorflow.decode_csv
product = tf.mul(a, b)  # expect: E101 tensorflow.mul
both = tf.pack([a, b])  # expect: E101 tensorflow.pack
first, second = tf.unpack(both)  # expect: E101 tensorflow.unpack
gap = tf.sub(first, second)  # expect: E101 tensorflow.sub
tf.scalar_summary('gap', gap)  # expect: E101 tensorflow.scalar_summary
summaries = tf.merge_all_summaries()  # expect: E101 tensorflow.merge_all_summaries

with tf.Session() as session:  # expect: I302 tensorflow.Session
    session.run(tf.initialize_all_variables())  # expect: I302 tensorflow.initialize_all_variables
    writer = tf.train.SummaryWriter(folder, session.graph)  # expect: E101 tensorflow.train.SummaryWriter
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=session, coord=coord)  # expect: I302 tensorflow.train.start_queue_runners
    for step in xrange(3):
        writer.add_summary(session.run(summaries), step)
    coord.request_stop()
    coord.join(threads)
print('reached the last line')
