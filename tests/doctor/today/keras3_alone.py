"""Keras 3 by itself, on TensorFlow."""
import os

os.environ['KERAS_BACKEND'] = 'tensorflow'

import keras
from keras import layers, ops

model = keras.Sequential([layers.Input((2,)), layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.1), keras.losses.MeanSquaredError())
model.fit(ops.ones((4, 2)), ops.ones((4, 1)), verbose=0)
print(keras.ops.convert_to_numpy(model(ops.ones((1, 2)))).shape, keras.saving.get_custom_objects())
print('reached the last line')
