"""A few steps of DeepFM, over feature columns."""

import tempfile

import tensorflow as tf
from deepctr.estimator import DeepFMEstimator

column = tf.feature_column
word, number = column.categorical_column_with_identity('c', 10), column.numeric_column('d')


def input_fn():
    features = {'c': [[1], [2]], 'd': [[.1], [.2]]}
    return tf.data.Dataset.from_tensors((features, [[0.], [1.]])).repeat(5)


estimator = DeepFMEstimator([word, number], [column.embedding_column(word, 4), number],
                            task='binary', model_dir=tempfile.mkdtemp())
estimator.train(input_fn)
print('trained', estimator.get_variable_value('global_step'))
