"""2020: tf.keras with names that Keras 3 dropped and Keras 2 has."""
# run: etpe run
import tensorflow as tf
from tensorflow.keras.layers.experimental import preprocessing  # expect: I304 tensorflow.keras.layers.experimental.preprocessing

columns = [tf.feature_column.numeric_column('x')]
model = tf.keras.Sequential([
    tf.keras.layers.DenseFeatures(columns),  # expect: I304 tensorflow.keras.layers.DenseFeatures
    tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(0.1), tf.keras.losses.mean_squared_error)  # expect: I304 tensorflow.keras.losses.mean_squared_error
model.fit({'x': tf.ones([4, 1])}, tf.ones([4]), verbose=0)
scaler = preprocessing.Rescaling(0.5)  # expect: I304 tensorflow.keras.layers.experimental.preprocessing.Rescaling
print(scaler(tf.ones([1])).numpy())
lookup = tf.keras.layers.experimental.preprocessing.StringLookup(vocabulary=['a'])  # expect: I304 tensorflow.keras.layers.experimental.preprocessing.StringLookup
print(lookup(tf.constant(['a'])).numpy(), callable(tf.keras.experimental.SequenceFeatures))  # expect: I304 tensorflow.keras.experimental.SequenceFeatures
print('reached the last line')
