"""Trains a table by each optimizer with `tensorflow.python.tpu.tpu_embedding`.

    python tpu_embedding_job.py OUT [LIBRARY]

The module is that of TensorFlow 2.15 if there is a LIBRARY, whose kernels then compute a TPU's
operations, and under `etpe run` it is that of this package. Rows and slots go to OUT, as NumPy
saves them.
"""

import ctypes
import sys

import numpy as np
import tensorflow.compat.v1 as tf

OUT, *LIBRARY = sys.argv[1:]
if LIBRARY:
    tf.load_op_library(LIBRARY[0])
    register = ctypes.CDLL(LIBRARY[0]).ete_register_tpu_kernels
    register.restype = ctypes.c_char_p
    assert register() == b''

from tensorflow.python.tpu import tpu_embedding as module  # noqa: E402

tf.disable_v2_behavior()
SAMPLES, STEPS, ROWS, LENGTH = 4, 5, 7, 3
OPTIMIZERS = [
    module.AdagradParameters(.1, initial_accumulator=.2),
    module.AdagradMomentumParameters(.1, momentum=.5, use_nesterov=True, beta2=.9, epsilon=.01),
    module.AdamParameters(.1, beta1=.7, beta2=.999, lazy_adam=False),
    module.FtrlParameters(.1, l1_regularization_strength=.01, beta=.1),
    module.MomentumParameters(.1, momentum=.5), module.ProximalAdagradParameters(.1),
    module.ProximalYogiParameters(.1), module.RMSPropParameters(.1, rho=.9, momentum=.5,
                                                                epsilon=.01),
    module.StochasticGradientDescentParameters(.1, clip_weight_max=1., weight_decay_factor=.01),
    module.FrequencyEstimatorParameters(tau=.5, max_delta=.1, outlier_threshold=5.,
                                        weight_exponent=1.)]
WIDTHS = {module.FrequencyEstimatorParameters: 1}


def rate(step):
    return .5 / tf.cast(step + 1, tf.float32)


tables = {f't{number}': module.TableConfig(
    ROWS, WIDTHS.get(type(optimizer), 3), combiner=['sum', 'mean', 'sqrtn'][number % 3],
    initializer=tf.ones_initializer(), optimization_parameters=optimizer,
    learning_rate_fn=rate if number == 1 else None)
    for number, optimizer in enumerate(OPTIMIZERS)}
features = {}
for table in tables:
    features[f'{table}/plain'] = module.FeatureConfig(table)
    features[f'{table}/weighted'] = module.FeatureConfig(table, weight_key='weights')
    features[f'{table}/path'] = module.FeatureConfig(table, max_sequence_length=LENGTH)
random = np.random.default_rng(3)


def ids_of(name):
    """Up to three ids of each sample."""
    where = [[sample, at] for sample in range(SAMPLES)
             for at in range(random.integers(0, LENGTH + 1))]
    return {'embedding_indices': random.integers(0, ROWS, len(where)),
            'sample_indices': np.int64(where).reshape(-1, 2),
            'aggregation_weights': random.uniform(.5, 2, len(where)).astype(np.float32)}


with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(
        allow_soft_placement=True)) as session:
    made = module.TPUEmbedding(
        tables, features, SAMPLES, module.TRAINING,
        device_config=module.DeviceConfig(num_hosts=1, num_cores=1, job_name='/job:localhost'))
    variables = made.create_variables_and_ops()
    step = tf.train.create_global_step()
    places = {name: {'embedding_indices': tf.placeholder(tf.int64, [None]),
                     'sample_indices': tf.placeholder(tf.int64, [None, 2]),
                     'aggregation_weights': tf.placeholder(tf.float32, [None])}
              for name in features}
    enqueue = made.generate_enqueue_ops([{
        name: module.EnqueueData(**{key: place for key, place in its.items()
                                    if key != 'aggregation_weights' or 'weighted' in name})
        for name, its in places.items()}])
    activations = made.get_activations()
    loss = tf.add_n([tf.reduce_sum(tf.square(one - .5)) for one in activations.values()])
    send = made.generate_send_gradients_op(
        dict(zip(activations, tf.gradients(loss, list(activations.values())))), step=step)
    load, retrieve = variables.load_ops(), variables.retrieve_ops()
    if LIBRARY:
        start = tf.raw_ops.ConfigureDistributedTPU(
            embedding_config=made.config_proto.SerializeToString())
        session.run(start)
    session.run(tf.global_variables_initializer())
    session.run(load)
    for number in range(STEPS):
        feed = {place: value for name in features
                for place, value in zip(places[name].values(), ids_of(name).values())}
        session.run(enqueue, feed)
        found, _ = session.run([loss, send])
        session.run(step.assign_add(1))
    session.run(retrieve)
    slots = {name: variables.slot_variables_by_table.get(name) or () for name in tables}
    values = {f'{name} {number}': np.concatenate(session.run(list(parts)))
              for name in tables for number, parts in enumerate(
                  [variables.embedding_variables_by_table[name], *slots[name]])}
np.savez(OUT, loss=found, **values)
