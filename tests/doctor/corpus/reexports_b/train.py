"""Takes TensorFlow 2 from a module beside it, and means TensorFlow 1."""
# run: etpe run --tf1
# stops: common.missing_helper
import common
from common import tf
from common import missing_helper  # expect: E112 common.missing_helper

x = tf.placeholder(tf.float32, [])  # expect: I302 tensorflow.placeholder
y = common.tf.log(x)  # expect: I302 tensorflow.log
z = common.tf.merge_summary([y])  # expect: E101 tensorflow.merge_summary
print('reached the last line', missing_helper)
