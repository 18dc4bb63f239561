"""A script that restores the names by itself, and runs in plain Python."""
import estimator_tpu_embedding

estimator_tpu_embedding.install(hosts=1, cores=2)

import tensorflow.compat.v1 as tf
from tensorflow.compat.v1 import estimator as tf_estimator

resolver = tf.distribute.cluster_resolver.TPUClusterResolver('x')
print(resolver.num_accelerators(), tf_estimator.tpu.TPUConfig(2).iterations_per_loop)
print(tf.estimator.tpu.TPUEstimator is estimator_tpu_embedding.TPUEstimator)
print('reached the last line')
