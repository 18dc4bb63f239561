"""2018: only a method gives away that TensorFlow 1 is meant."""
# run: etpe run --tf1
import tensorflow as tf

rows = tf.data.Dataset.range(3).batch(2)
iterator = rows.make_one_shot_iterator()  # expect: I302|W201
print(iterator.get_next())
print('reached the last line')
