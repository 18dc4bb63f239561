"""A few steps of a Keras model, with an optimizer and a layer of TensorFlow Addons."""

import tensorflow as tf
import tensorflow_addons as tfa

model = tf.keras.Sequential([tfa.layers.WeightNormalization(tf.keras.layers.Dense(1))])
model.compile(tfa.optimizers.AdamW(weight_decay=1e-4, learning_rate=.01), 'mse')
model.fit(tf.ones([8, 3]), tf.ones([8, 1]), batch_size=2, verbose=0)
print('trained', int(model.optimizer.iterations))
