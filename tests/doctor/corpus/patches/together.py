"""Has the names that a module of the project puts into TensorFlow."""
# run: etpe run
import patching
import tensorflow as tf

print(tf.placeholder(tf.float32, []), patching)  # expect: I305 tensorflow.placeholder
print('reached the last line')
