"""A name that Keras 3 has and Keras 2 lacks stops `etpe run`; plain Python runs it."""
# run: etpe run
# stops: tensorflow.keras.ops
import tensorflow as tf

print(tf.keras.ops.convert_to_numpy(tf.keras.ops.ones([2])))  # expect: E105 tensorflow.keras.ops
print('reached the last line')
