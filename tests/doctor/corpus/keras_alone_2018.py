"""2018: Keras by itself beside a session; today's Keras cannot be imported with --tf1."""
# run: etpe run --tf1
# stops: keras
from keras.layers import Dense  # expect: E105|E113 keras
from keras.utils import np_utils  # expect: E113|E105 keras.utils
import keras.backend as K  # expect: E105|E113 keras
import tensorflow as tf

session = tf.Session()  # expect: I302 tensorflow.Session
K.set_session(session)  # expect: E113|E105 keras.backend
print('reached the last line', Dense, np_utils)
