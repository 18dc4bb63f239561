"""Calls of the legacy classes that cannot work, and the names of those classes.

`tools/make_goldens.py` writes down what TensorFlow 2.15 raises for each; the tests compare.
"""

import tensorflow.compat.v1 as tf
from harness.declarations import build, declaration, optimizer

NAMES = (
    'AdagradParameters', 'AdagradMomentumParameters', 'AdamParameters', 'FtrlParameters',
    'FrequencyEstimatorParameters', 'MomentumParameters', 'ProximalAdagradParameters',
    'ProximalYogiParameters', 'RMSPropParameters', 'StochasticGradientDescentParameters',
    'TableConfig', 'FeatureConfig', 'DeviceConfig', 'TPUEmbedding', 'EmbeddingConfigSpec',
    'EnqueueData', 'RaggedEnqueueData', 'TPUEmbedding.create_variables_and_ops',
    'TPUEmbedding.generate_enqueue_ops', 'TPUEmbedding.get_activations',
    'TPUEmbedding.generate_send_gradients_op', 'VariablesAndOps',
    'AdagradMomentumSlotVariableNames', 'AdagradMomentumSlotVariables',
    'AdagradSlotVariableNames', 'AdagradSlotVariables', 'AdamSlotVariableNames',
    'AdamSlotVariables', 'FrequencyEstimatorSlotVariableNames', 'FrequencyEstimatorSlotVariables',
    'FtrlSlotVariable', 'FtrlSlotVariableNames', 'MomentumSlotVariableNames',
    'MomentumSlotVariables', 'ProximalAdagradSlotVariableNames', 'ProximalAdagradSlotVariables',
    'ProximalYogiSlotVariableNames', 'ProximalYogiSlotVariables', 'RMSPropSlotVariableNames',
    'RMSPropSlotVariables')


def _parameters(name, **arguments):
    declared, given = optimizer(name)
    return lambda api: getattr(api, declared)(**{**given, **arguments})


def _table(**arguments):
    return lambda api: api.TableConfig(**{'vocabulary_size': 5, 'dimension': 2, **arguments})


def _embedding(**arguments):
    return lambda api: build(api, {**declaration(), **arguments})


def _verb(call, **arguments):
    """Calls a verb of a TPUEmbedding of 2 cores on one host in a graph of its own."""
    def in_graph(api):
        with tf.Graph().as_default():
            return call(api, build(api, declaration(cores=2, **arguments)))
    return in_graph


def _ids(api, device='/device:CPU:0', samples='/device:CPU:0'):
    with tf.device(device):
        ids = tf.zeros([1], tf.int64)
    with tf.device(samples):
        return api.EnqueueData(ids, tf.zeros([1, 2], tf.int64))


def _enqueue(datas, **options):
    return _verb(lambda api, embedding: embedding.generate_enqueue_ops(datas(api), **options),
                 features={'a': {'table_id': 'user'}, 'b': {'table_id': 'item'}})


def _twice(api, embedding):
    embedding.create_variables_and_ops()
    embedding.create_variables_and_ops()


BAD_CALLS = {
    'clip without accumulation': _parameters('Adam', use_gradient_accumulation=False,
                                             clip_gradient_min=0.),
    'adagrad accumulator': _parameters('Adagrad', initial_accumulator=0.),
    'adagrad momentum epsilon': _parameters('AdagradMomentum', epsilon=0.),
    'adagrad momentum exponent': _parameters('AdagradMomentum', exponent=-1),
    'proximal accumulator': _parameters('ProximalAdagrad', initial_accumulator=-.5),
    'proximal l1': _parameters('ProximalAdagrad', l1_regularization_strength=-1.),
    'proximal l2': _parameters('ProximalAdagrad', l2_regularization_strength=-2.),
    'adam beta1': _parameters('Adam', beta1=1.), 'adam beta2': _parameters('Adam', beta2=-.1),
    'adam epsilon': _parameters('Adam', epsilon=0.),
    'adam not lazy': _parameters('Adam', use_gradient_accumulation=False, lazy_adam=False),
    'ftrl power': _parameters('Ftrl', learning_rate_power=.5),
    'ftrl accumulator': _parameters('Ftrl', initial_accumulator_value=-1.),
    'ftrl l1': _parameters('Ftrl', l1_regularization_strength=-1.),
    'yogi beta1': _parameters('ProximalYogi', beta1=2.),
    'yogi epsilon': _parameters('ProximalYogi', epsilon=-1.),
    'yogi l2': _parameters('ProximalYogi', l2_regularization_strength=-1.),
    'vocabulary 0': _table(vocabulary_size=0), 'vocabulary 1.5': _table(vocabulary_size=1.5),
    'dimension 0': _table(dimension=0), 'initializer': _table(initializer=3),
    'combiner': _table(combiner='max'), 'optimizer of a table': _table(optimization_parameters=3),
    'sequence length': lambda api: api.FeatureConfig('t', -1),
    'strategy': _embedding(partition_strategy='hash'),
    'table without feature': _embedding(feature_to_config_dict={'a': {'table_id': 'user'}}),
    'feature without table': _embedding(feature_to_config_dict={
        'a': {'table_id': 'user'}, 'b': {'table_id': 'item'}, 'c': {'table_id': 'absent'}}),
    'no class of tables': lambda api: api.TPUEmbedding(
        {'t': 3}, {}, 4, api.TRAINING, device_config=api.DeviceConfig(1, 1, '')),
    'batch size': _embedding(cores=3), 'no optimizer': _embedding(optimization_parameters=None),
    'optimizer in inference': _embedding(mode='INFERENCE'),
    'missing feature': _enqueue(lambda api: [{'a': _ids(api)}]),
    'extra feature': _enqueue(lambda api: [dict.fromkeys('abc', _ids(api))]),
    'no enqueue data': _enqueue(lambda api: [{'a': _ids(api), 'b': 3}]),
    'device of samples': _enqueue(lambda api: [
        {'a': _ids(api), 'b': _ids(api, samples='/device:CPU:1')}]),
    'devices of features': _enqueue(lambda api: [
        {'a': _ids(api), 'b': _ids(api, '/device:CPU:1', '/device:CPU:1')}]),
    'devices of cores': _enqueue(lambda api: [
        {'a': _ids(api), 'b': _ids(api)},
        dict.fromkeys('ab', _ids(api, '/device:CPU:1', '/device:CPU:1'))]),
    'sparse data for ragged': _enqueue(
        lambda api: [dict.fromkeys('ab', _ids(api))], ragged=True),
    'variables twice': _verb(_twice),
    'no variable name': _verb(lambda api, embedding: embedding.create_variables_and_ops(
        {'user': 'u'})),
    'no slot names': _verb(lambda api, embedding: embedding.create_variables_and_ops(
        None, {'user': api.AdagradSlotVariableNames('u')})),
    'gradients in inference': _verb(
        lambda api, embedding: embedding.generate_send_gradients_op({}),
        mode='INFERENCE'),
    'no step': _verb(
        lambda api, embedding: embedding.generate_send_gradients_op({}),
        tables={'user': {'vocabulary_size': 7, 'dimension': 1, 'learning_rate_fn': 0},
                'item': {'vocabulary_size': 9, 'dimension': 1}}),
    'no gradient': _verb(lambda api, embedding: embedding.generate_send_gradients_op({}))}
