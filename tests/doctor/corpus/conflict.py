"""Half of this is TensorFlow 1 and half is TensorFlow 2: no flags run all of it."""
# run: etpe run --tf1
# stops: tensorflow.optimizers.Adam
import tensorflow as tf

x = tf.placeholder(tf.float32, [None])  # expect: I302 tensorflow.placeholder
y = tf.layers.dense(x[:, None], 1)  # expect: I302 tensorflow.layers.dense
with tf.Session() as session:  # expect: I302 tensorflow.Session
    session.run(tf.global_variables_initializer())  # expect: I302 tensorflow.global_variables_initializer
    print(session.run(y, {x: [1.0]}))
optimizer = tf.optimizers.Adam(0.1)  # expect: E105 tensorflow.optimizers.Adam
area = tf.metrics.AUC()  # expect: E105 tensorflow.metrics.AUC
loss = tf.losses.BinaryCrossentropy()  # expect: E105 tensorflow.losses.BinaryCrossentropy
print('reached the last line')
