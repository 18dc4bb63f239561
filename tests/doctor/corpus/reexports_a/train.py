"""Takes TensorFlow from a module beside it."""
# run: etpe run
from common import *
from common import tf as tensorflow1
from jobs import tower

x = tf.placeholder(tf.float32, [])
with session() as active:
    active.run(tower.net(x), {x: 1.0})
print(keras_layers.Dense(1), tensorflow1.VERSION, tf.estimator.ModeKeys.TRAIN)  # expect: I301 tensorflow.compat.v1.estimator.ModeKeys; I304 tensorflow.compat.v1.keras.layers.Dense
print('reached the last line')
