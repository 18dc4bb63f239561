"""Programs that are prepared for what is missing run to their last line."""
# run: etpe run
try:
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
except ImportError:
    import tensorflow as tf

try:
    from tensorflow.contrib import slim  # expect: I305 tensorflow.contrib.slim
except ImportError:
    slim = None

try:
    import cPickle as pickle  # expect: I305 cPickle
except ImportError:
    import pickle

try:
    from collections import Mapping  # expect: I301 collections.Mapping
except ImportError:
    from collections.abc import Mapping

try:
    import ujson_of_nobody as json  # expect: I305 ujson_of_nobody
except ModuleNotFoundError:
    import json

try:
    unicode  # expect: I305 unicode
except NameError:
    unicode = str

try:
    Saver = tf.train.SaverOfNobody  # expect: I305 tensorflow.compat.v1.train.SaverOfNobody
except AttributeError:
    Saver = tf.train.Saver

if hasattr(tf, 'contrib'):
    HParams = tf.contrib.training.HParams  # expect: I305 tensorflow.compat.v1.contrib.training.HParams; I305 tensorflow.contrib.training.HParams
else:
    HParams = dict

x = tf.placeholder(tf.float32, [])
y = tf.get_variable('y', [], initializer=tf.zeros_initializer())
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(x + y, {x: 1.0})
print(isinstance(HParams(a=1), Mapping), unicode('x'), json.dumps(1), pickle.dumps(2), slim, Saver)
print('reached the last line')
