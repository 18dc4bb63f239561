"""2017: Keras by itself, with modules and names that it has moved or dropped."""
# run: etpe run
# stops: keras.layers.normalization
import keras
from keras.layers import Dense, Input
from keras.layers.normalization import BatchNormalization  # expect: E113 keras.layers.normalization
from keras.models import Model, Sequential
from keras.utils.np_utils import to_categorical  # expect: E113 keras.utils.np_utils

model = Sequential([Input((2,)), Dense(2), BatchNormalization()])
model.compile(keras.optimizers.SGD(0.1), 'mse')
parallel = keras.utils.multi_gpu_model(model)  # expect: E113 keras.utils.multi_gpu_model
print('reached the last line', to_categorical([1]), Model, parallel)
