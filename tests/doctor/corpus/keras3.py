"""A name that Keras 3 has and Keras 2 lacks stops `etpe run`, and plain Python runs it."""
# run: python
import tensorflow as tf

print(tf.keras.ops.convert_to_numpy(tf.keras.ops.ones([2])))  # expect: E105 tensorflow.keras.ops
print('reached the last line')
