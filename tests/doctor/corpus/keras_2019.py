"""2019: Keras by itself and in TensorFlow, with names that Keras has dropped."""
# run: etpe run --tf1
# stops: tensorflow.keras.utils.multi_gpu_model
import numpy as np
import tensorflow as tf
from tensorflow.keras import backend as K
from tensorflow.keras.layers import Dense, Input
from tensorflow.keras.models import Model
from tensorflow.keras.utils import multi_gpu_model  # expect: E101 tensorflow.keras.utils.multi_gpu_model

config = tf.ConfigProto()  # expect: I302 tensorflow.ConfigProto
config.gpu_options.allow_growth = True
K.set_session(tf.Session(config=config))  # expect: I302 tensorflow.keras.backend.set_session; I302 tensorflow.Session

inputs = Input((4,))
model = Model(inputs, Dense(1, activation=tf.nn.relu)(inputs))
model = multi_gpu_model(model, gpus=2)
model.compile(tf.keras.optimizers.SGD(0.1), 'mse')
model.fit(np.ones((4, 4)), np.ones(4))
print('reached the last line', K.learning_phase())  # expect: I304 tensorflow.keras.backend.learning_phase
