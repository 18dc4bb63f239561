"""Calls of the legacy classes that cannot work, and the names of those classes.

`tools/make_goldens.py` writes down what TensorFlow 2.15 raises for each; the tests compare.
"""

from harness.declarations import build, declaration, optimizer

NAMES = (
    'AdagradParameters', 'AdagradMomentumParameters', 'AdamParameters', 'FtrlParameters',
    'FrequencyEstimatorParameters', 'MomentumParameters', 'ProximalAdagradParameters',
    'ProximalYogiParameters', 'RMSPropParameters', 'StochasticGradientDescentParameters',
    'TableConfig', 'FeatureConfig', 'DeviceConfig', 'TPUEmbedding', 'EmbeddingConfigSpec',
    'EnqueueData', 'RaggedEnqueueData')


def _parameters(name, **arguments):
    declared, given = optimizer(name)
    return lambda api: getattr(api, declared)(**{**given, **arguments})


def _table(**arguments):
    return lambda api: api.TableConfig(**{'vocabulary_size': 5, 'dimension': 2, **arguments})


def _embedding(**arguments):
    return lambda api: build(api, {**declaration(), **arguments})


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
    'no system': lambda api: api.TPUEmbedding(
        {'t': api.TableConfig(5, 2)}, {'f': api.FeatureConfig('t')}, 4, api.TRAINING),
    'batch size': _embedding(cores=3), 'no optimizer': _embedding(optimization_parameters=None),
    'optimizer in inference': _embedding(mode='INFERENCE')}
