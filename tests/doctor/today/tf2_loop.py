"""TF2: a Keras model, a loop with a tape, tf.data, a saved model, tables, records."""
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow.experimental.numpy as tnp
from tensorflow import keras
from tensorflow.keras import layers
from tensorflow.keras.layers import Dense
from tensorflow.python.framework import ops

AUTOTUNE = tf.data.AUTOTUNE
folder = tempfile.mkdtemp()


class Classifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = Dense(1, activation=tf.nn.relu, kernel_initializer='glorot_uniform')

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        return self.dense(x)


class Scaler(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x):
        return 2.0 * x


model = Classifier()
optimizer = keras.optimizers.Adam(learning_rate=0.1)
rows = tf.data.Dataset.from_tensor_slices((np.ones((8, 2), np.float32), np.ones((8, 1))))
for x, y in rows.shuffle(8).batch(4, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.keras.losses.MeanSquaredError()(y, model(x, training=True)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

tf.saved_model.save(Scaler(), folder, options=tf.saved_model.SaveOptions())
assert tf.saved_model.load(folder)(tf.constant([1.0])).numpy()[0] == 2
example = tf.train.Example(features=tf.train.Features(feature={
    'id': tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))}))
with tf.io.TFRecordWriter(os.path.join(folder, 'rows')) as writer:
    writer.write(example.SerializeToString())
assert example.features.feature['id'].int64_list.value[0] == 1
keys = tf.lookup.KeyValueTensorInitializer(['a'], [1], tf.string, tf.int64)
print(tf.lookup.StaticHashTable(keys, -1).lookup(tf.constant(['a'])).numpy())
print(tnp.float32, tf.float32.name, tf.newaxis, tf.__version__, tf.version.VERSION, layers.Dense)
print(tf.keras.Model.fit.__name__, tf.data.Dataset.map.__doc__[:5], tf.raw_ops.Add.__name__)
print(tf.distribute.get_strategy().num_replicas_in_sync, tf.errors.OutOfRangeError, ops.Graph)
print(tf.compat.v2.constant(1), tf.compat.v1.keras.layers.Dense, tf.io.gfile.exists(folder))
tf.config.threading.get_inter_op_parallelism_threads()
assert not hasattr(tf, 'mul')
print('reached the last line')
