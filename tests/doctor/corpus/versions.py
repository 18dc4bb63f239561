"""Branches on versions: what the other version has does not stop this one."""
# run: etpe run
import sys

import numpy as np
import six
import tensorflow as tf

if tf.__version__.startswith('1.'):
    session = tf.Session()  # expect: I305 tensorflow.Session
else:
    session = tf.compat.v1.Session()

if int(tf.__version__.split('.')[0]) < 2:
    placeholder = tf.placeholder  # expect: I305 tensorflow.placeholder
else:
    placeholder = tf.compat.v1.placeholder

if sys.version_info[0] < 3:
    text_type = unicode  # expect: I305 unicode
else:
    text_type = str

if six.PY2:
    import urllib2  # expect: I305 urllib2
else:
    import urllib.request as urllib2

if sys.version_info >= (3,):
    xrange = range

log = tf.log if hasattr(tf, 'log') else tf.math.log  # expect: I305 tensorflow.log
print([text_type(i) for i in xrange(2)], urllib2, np.float64(1), callable(log))
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    x = placeholder(tf.float32, [])
    print(session.run(x + 1, {x: 1}))
print('reached the last line')
