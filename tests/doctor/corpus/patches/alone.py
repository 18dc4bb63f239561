"""Does not import the module that puts names into TensorFlow, so it does not have them."""
# run: etpe run --tf1
import tensorflow as tf

print(tf.placeholder(tf.float32, []))  # expect: I302 tensorflow.placeholder
print('reached the last line')
