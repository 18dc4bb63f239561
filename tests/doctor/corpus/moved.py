"""Private names of TensorFlow: some are there, some are restored, and some have moved."""
# run: etpe run
# stops: tensorflow.python.eager.function.defun
from tensorflow.python.client import device_lib
from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.tpu import tpu_embedding  # expect: I301 tensorflow.python.tpu.tpu_embedding
from tensorflow.python.tpu.tpu_estimator import TPUEstimator  # expect: I301 tensorflow.python.tpu.tpu_estimator.TPUEstimator
from tensorflow.python.estimator.model_fn import EstimatorSpec  # expect: I301 tensorflow.python.estimator.model_fn.EstimatorSpec

from tensorflow.python.training.tracking import base  # expect: I301 tensorflow.python.training.tracking.base
from tensorflow.python.framework.ops import Tensor  # expect: I301 tensorflow.python.framework.ops.Tensor
from tensorflow.python.eager.function import defun  # expect: E102 tensorflow.python.eager.function.defun
from tensorflow.python.ops.control_flow_ops import while_loop, group  # expect: I301 tensorflow.python.ops.control_flow_ops.while_loop
from tensorflow_core.python.ops import array_ops  # expect: I301 tensorflow_core
from tensorflow.python.keras.engine import network  # expect: E102 tensorflow.python.keras.engine.network
import tensorflow.python.ops.nobody_has_it as lost  # expect: E101 tensorflow.python.ops.nobody_has_it

print(ops.get_default_graph(), logging.INFO, device_lib.list_local_devices())
print(tpu_embedding.AdagradParameters(0.1), TPUEstimator, EstimatorSpec)  # expect: I301 tensorflow.python.tpu.tpu_embedding.AdagradParameters
print(base.Trackable, group, ops.IndexedSlices)  # expect: I301 tensorflow.python.training.tracking.base.Trackable; I301 tensorflow.python.framework.ops.IndexedSlices
print(defun(lambda: 0), while_loop, array_ops.stack, network, lost, Tensor)  # expect: I301 tensorflow_core.python.ops.array_ops.stack
print('reached the last line')
