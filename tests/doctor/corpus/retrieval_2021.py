"""2021: a two-tower model of TensorFlow Recommenders over Keras layers."""
# run: etpe run
from typing import Dict, Text

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs

MOVIES = np.array(['a', 'b', 'c'])


class Model(tfrs.Model):
    def __init__(self):
        super().__init__()
        self.towers = [tf.keras.Sequential([
            tf.keras.layers.StringLookup(vocabulary=MOVIES, mask_token=None),
            tf.keras.layers.Embedding(len(MOVIES) + 1, 4)]) for _ in range(2)]
        self.task = tfrs.tasks.Retrieval()

    def compute_loss(self, features: Dict[Text, tf.Tensor], training=False) -> tf.Tensor:
        user, movie = (tower(features[name]) for tower, name in zip(self.towers, ('user', 'movie')))
        return self.task(user, movie, compute_metrics=not training)


model = Model()
model.compile(optimizer=tf.keras.optimizers.legacy.Adagrad(0.1))
data = tf.data.Dataset.from_tensor_slices({'user': MOVIES, 'movie': MOVIES})
model.fit(data.batch(3), epochs=1, verbose=0)
print('reached the last line')
