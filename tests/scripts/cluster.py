"""An unedited TF1 script: trains a line by `train_and_evaluate` in a process per task.

    etpe run cluster.py MODEL_DIR none|ps|mwms MAX_STEPS

Chief and worker wait for each other, by files: a worker finds initialised variables, for which it
would else wait half a minute, and makes a step before the chief has made all of them.
"""

import json
import os
import pathlib
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

directory, strategy_name, max_steps = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
task = json.loads(os.environ['TF_CONFIG'])['task']['type']
X = np.arange(24, dtype=np.float32).reshape(12, 2) / 10
Y = X @ np.float32([[1], [-2]]) + 3


def wait_for(name):
    end = time.time() + 200
    while not (directory / name).exists():
        assert time.time() < end, f'{task} waited in vain for {name}'
        time.sleep(.05)


class Meeting(tf.train.SessionRunHook):
    """Says that this task is there, and makes the chief wait for the first step of the worker."""

    def after_create_session(self, session, coord):
        (directory / f'{task}.there').touch()

    def before_run(self, run_context):
        if task == 'chief':
            wait_for('worker.trained')

    def after_run(self, run_context, run_values):
        (directory / f'{task}.trained').touch()


def train_input(input_context=None):
    """All the data, or batches of 2 of the half of it that a mirrored worker has."""
    data = tf.data.Dataset.from_tensor_slices(({'x': X}, Y)).repeat()
    if strategy_name == 'mwms':
        return data.shard(
            input_context.num_input_pipelines, input_context.input_pipeline_id).batch(2)
    if task == 'worker':
        wait_for('chief.there')
    return data.batch(12)


def model_fn(features, labels, mode):
    weights = tf.get_variable('weights', [2, 1], initializer=tf.ones_initializer())
    bias = tf.get_variable('bias', [1], initializer=tf.zeros_initializer())
    predictions = tf.matmul(features['x'], weights) + bias
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    # Without the square its gradient is the same in each step, whoever makes it.
    power = 2 if strategy_name == 'mwms' else 1
    loss = tf.reduce_mean((predictions - labels) ** power)
    train_op = tf.train.GradientDescentOptimizer(.125).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op,
        eval_metric_ops={'mean': tf.metrics.mean(predictions)})


def serving():
    x = tf.placeholder(tf.float32, [None, 2])
    return tf.estimator.export.ServingInputReceiver({'x': x}, x)


def main():
    tf.logging.set_verbosity(tf.logging.INFO)
    strategies = {
        'none': lambda: None,
        'mwms': lambda: tf.distribute.experimental.MultiWorkerMirroredStrategy(),
        'ps': lambda: tf.distribute.experimental.ParameterServerStrategy()}
    config = tf.estimator.RunConfig(
        str(directory), train_distribute=strategies[strategy_name](), save_checkpoints_steps=5,
        experimental_max_worker_delay_secs=0)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    result = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(train_input, max_steps=max_steps,
                               hooks=[Meeting()]),
        tf.estimator.EvalSpec(
            lambda: tf.data.Dataset.from_tensors(({'x': X}, Y)), start_delay_secs=0,
            throttle_secs=1, exporters=tf.estimator.FinalExporter('final', serving)))
    print('ended', task, result)


main()
