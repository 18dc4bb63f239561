"""Two iterations of AdaNet over a linear candidate."""

import tempfile

import adanet
import tensorflow as tf


class Linear(adanet.subnetwork.Builder):

    name = 'linear'

    def build_subnetwork(self, features, logits_dimension, training, iteration_step, summary,
                         previous_ensemble=None):
        inputs = tf.cast(features['x'], tf.float32)
        return adanet.Subnetwork(
            last_layer=inputs, logits=tf.compat.v1.layers.dense(inputs, logits_dimension),
            complexity=1., shared={})

    def build_subnetwork_train_op(self, subnetwork, loss, var_list, labels, iteration_step,
                                  summary, previous_ensemble=None):
        return tf.compat.v1.train.GradientDescentOptimizer(.01).minimize(loss, var_list=var_list)


class Candidates(adanet.subnetwork.Generator):

    def generate_candidates(self, previous_ensemble, iteration_number, previous_ensemble_reports,
                            all_reports, config=None):
        return [Linear()]


def input_fn():
    return tf.data.Dataset.from_tensors(({'x': [[1.], [2.]]}, [[1.], [2.]])).repeat()


estimator = adanet.Estimator(
    head=tf.estimator.RegressionHead(), subnetwork_generator=Candidates(), max_iteration_steps=5,
    max_iterations=2, model_dir=tempfile.mkdtemp())
estimator.train(input_fn, steps=10)
print('trained', estimator.latest_checkpoint().rpartition('-')[2])
