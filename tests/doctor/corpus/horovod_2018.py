"""2018: horovod, sonnet and six beside a session; two packages are not installed."""
# run: etpe run --tf1
# stops: horovod.tensorflow
from absl import logging
import horovod.tensorflow as hvd  # expect: E111 horovod
import six
from six.moves import range, urllib
import sonnet as snt  # expect: E111 sonnet
import tensorflow as tf

hvd.init()
config = tf.ConfigProto()  # expect: I302 tensorflow.ConfigProto
config.gpu_options.visible_device_list = str(hvd.local_rank())
optimizer = hvd.DistributedOptimizer(tf.train.AdagradOptimizer(0.1))  # expect: I302 tensorflow.train.AdagradOptimizer
hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=3)]  # expect: I302 tensorflow.train.StopAtStepHook
logging.info('%s %s', six.text_type('x'), urllib.parse.quote('a b'))
with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:  # expect: I302 tensorflow.train.MonitoredTrainingSession
    for _ in range(3):
        session.run(optimizer.minimize(snt.Linear(1)(tf.ones([1, 1]))))
print('reached the last line')
