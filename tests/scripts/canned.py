"""2018: canned estimators, numpy inputs, train_and_evaluate with an exporter, early stopping."""
import os
import tempfile

import numpy as np
import tensorflow as tf

x = np.random.RandomState(0).rand(200, 2).astype(np.float32)
y = (x[:, 0] > x[:, 1]).astype(np.int32)
columns = [tf.feature_column.numeric_column('x', shape=[2])]
train_input = tf.compat.v1.estimator.inputs.numpy_input_fn(
    {'x': x}, y, batch_size=20, num_epochs=None, shuffle=True)
test_input = tf.compat.v1.estimator.inputs.numpy_input_fn({'x': x}, y, shuffle=False)

linear = tf.compat.v1.estimator.LinearClassifier(
    columns, optimizer=tf.compat.v1.train.FtrlOptimizer(.5))
linear.train(train_input, steps=30)
print('linear %.1f' % (linear.evaluate(test_input)['accuracy'] > .8))

network = tf.estimator.DNNClassifier(
    hidden_units=[8], feature_columns=columns, model_dir=tempfile.mkdtemp(),
    optimizer=lambda: tf.keras.optimizers.legacy.Adam(.05),
    config=tf.estimator.RunConfig(save_checkpoints_steps=20, tf_random_seed=1))
serving = tf.estimator.export.build_parsing_serving_input_receiver_fn(
    tf.feature_column.make_parse_example_spec(columns))
stop = tf.estimator.experimental.stop_if_higher_hook(
    network, 'accuracy', .7, run_every_secs=None, run_every_steps=20)
os.makedirs(network.eval_dir())
tf.estimator.train_and_evaluate(
    network, tf.estimator.TrainSpec(train_input, max_steps=200, hooks=[stop]),
    tf.estimator.EvalSpec(test_input, steps=None, start_delay_secs=0, throttle_secs=0,
                          exporters=tf.estimator.LatestExporter('latest', serving)))
exported = os.listdir(os.path.join(network.model_dir, 'export', 'latest'))
step = network.get_variable_value('global_step')
print('network stopped early: %s, exported: %s' % (20 <= step < 200, len(exported) > 0))
