"""The tutorial of 2016: data of `tensorflow.examples`, placeholders, an interactive session."""
# run: etpe run --tf1
# stops: tensorflow.examples.tutorials.mnist
from tensorflow.examples.tutorials.mnist import input_data  # expect: E101 tensorflow.examples

import tensorflow as tf

mnist = input_data.read_data_sets('MNIST_data', one_hot=True)  # expect: E101 tensorflow.examples

x = tf.placeholder(tf.float32, [None, 784])  # expect: I302 tensorflow.placeholder
W = tf.Variable(tf.zeros([784, 10]))
b = tf.Variable(tf.zeros([10]))
y = tf.nn.softmax(tf.matmul(x, W) + b)
y_ = tf.placeholder(tf.float32, [None, 10])  # expect: I302 tensorflow.placeholder
cross_entropy = tf.reduce_mean(
    -tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))  # expect: I302 tensorflow.log
optimizer = tf.train.GradientDescentOptimizer(0.5)  # expect: I302 tensorflow.train.GradientDescentOptimizer
train_step = optimizer.minimize(cross_entropy)

sess = tf.InteractiveSession()  # expect: I302 tensorflow.InteractiveSession
tf.global_variables_initializer().run()  # expect: I302 tensorflow.global_variables_initializer
for _ in range(10):
    batch_xs, batch_ys = mnist.train.next_batch(100)
    sess.run(train_step, feed_dict={x: batch_xs, y_: batch_ys})
print('reached the last line')
