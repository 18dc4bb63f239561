"""2017: queue runners, a hook, a scaffold; then a Keras model as an estimator, mirrored."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow import estimator

v1 = tf.compat.v1
directory = tempfile.mkdtemp()
path = os.path.join(directory, 'numbers.csv')
with open(path, 'w') as out:
    out.write(''.join('%d,%d\n' % (n, 2 * n) for n in range(10)))


def input_fn():
    queue = v1.train.string_input_producer([path])
    _, line = v1.TextLineReader().read(queue)
    x, y = v1.decode_csv(line, [[0.], [0.]])
    x, y = v1.train.batch([x, y], batch_size=5)
    return {'x': x}, y


class Seen(v1.train.SessionRunHook):
    batches = []

    def before_run(self, run_context):
        return v1.train.SessionRunArgs('batch:0')

    def after_run(self, run_context, run_values):
        self.batches.append(run_values.results)


def model_fn(features, labels, mode):
    w = v1.get_variable('w', [], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(w * features['x'] - labels))
    train_op = v1.train.GradientDescentOptimizer(.01).minimize(loss, v1.train.get_global_step())
    scaffold = v1.train.Scaffold(saver=v1.train.Saver(max_to_keep=1))
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold,
                                   training_hooks=[Seen()])


slope = v1.estimator.Estimator(model_fn, directory)
slope.train(input_fn, steps=50)
print('slope %.1f after %d batches' % (slope.get_variable_value('w'), len(Seen.batches)))

model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), name='out')])
model.compile(tf.keras.optimizers.legacy.SGD(.1), 'mse')
name = model.input_names[0]
keras = tf.keras.estimator.model_to_estimator(model, config=estimator.RunConfig(
    train_distribute=tf.distribute.MirroredStrategy(['/cpu:0'])))
keras.train(lambda: tf.data.Dataset.from_tensors((
    {name: np.float32([[0], [1]])}, np.float32([[0], [1]]))).repeat(), steps=5)
print('keras step %s' % keras.latest_checkpoint().rpartition('-')[2])
