"""Declares embeddings as plain data that TensorFlow 2.15 and this package can both build.

A declaration is a dict of the arguments of `TPUEmbedding`, and can be written as JSON. Tables and
features are dicts of their own arguments. An optimizer is `[class name, arguments]`, and a
learning-rate function its number in `FUNCTIONS`.
"""

FUNCTIONS = [lambda step: 1.0, lambda step: 2.0, lambda step: 3.0]

OPTIMIZERS = {  # name: own arguments, all different from their defaults
    'Adagrad': {'initial_accumulator': .25},
    'AdagradMomentum': {'momentum': .5, 'use_nesterov': True, 'exponent': 4, 'beta2': .75,
                        'epsilon': 1e-3},
    'ProximalAdagrad': {'initial_accumulator': .25, 'l1_regularization_strength': .5,
                        'l2_regularization_strength': .25},
    'Adam': {'beta1': .5, 'beta2': .75, 'epsilon': 1e-3, 'lazy_adam': False,
             'sum_inside_sqrt': False},
    'Ftrl': {'learning_rate_power': -.25, 'initial_accumulator_value': .5,
             'l1_regularization_strength': .5, 'l2_regularization_strength': .25,
             'multiply_linear_by_learning_rate': True, 'beta': .125,
             'allow_zero_accumulator': True},
    'ProximalYogi': {'beta1': .5, 'beta2': .75, 'epsilon': .5, 'l1_regularization_strength': .5,
                     'l2_regularization_strength': .25, 'initial_accumulator_value': .125},
    'Momentum': {'momentum': .5, 'use_nesterov': True},
    'RMSProp': {'rho': .5, 'momentum': .25, 'epsilon': .125},
    'StochasticGradientDescent': {},
    'FrequencyEstimator': {'tau': .5, 'max_delta': 8., 'outlier_threshold': 4.,
                           'weight_exponent': .25}}
REQUIRED = {'AdagradMomentum': {'momentum': .9}, 'Momentum': {'momentum': .9},
            'RMSProp': {'rho': .9, 'momentum': .9, 'epsilon': 1e-10},
            'FrequencyEstimator': OPTIMIZERS['FrequencyEstimator']}
OPTIONS = {
    'no_accumulation': {'use_gradient_accumulation': False},
    'clip_weights': {'clip_weight_min': -1., 'clip_weight_max': 0.},
    'clip_gradients': {'clip_gradient_min': 0., 'clip_gradient_max': 2.},
    'decay': {'weight_decay_factor': .5, 'multiply_weight_decay_factor_by_learning_rate': True},
    'decay_of_zero': {'weight_decay_factor': 0.,
                      'multiply_weight_decay_factor_by_learning_rate': True}}


def optimizer(name, rate=.1, **arguments):
    """An optimizer of a declaration; `FrequencyEstimator` has no rate."""
    own = {} if name == 'FrequencyEstimator' else {'learning_rate': rate}
    return [f'{name}Parameters', {**own, **REQUIRED.get(name, {}), **arguments}]


def declaration(tables=None, features=None, hosts=1, cores=1, batch_per_core=4, mode='TRAINING',
                by=None, **kwargs):
    """One declaration; two tables and three features where none are given."""
    return {'table_to_config_dict': tables or {
                'user': {'vocabulary_size': 7, 'dimension': 3},
                'item': {'vocabulary_size': 100, 'dimension': 8, 'combiner': 'sum'}},
            'feature_to_config_dict': features or {
                'watched': {'table_id': 'item'}, 'viewer': {'table_id': 'user'},
                'author': {'table_id': 'user'}},
            'hosts': hosts, 'cores': cores, 'batch_size': batch_per_core * hosts * cores,
            'mode': mode, 'optimization_parameters': by if mode == 'INFERENCE' or by
            else optimizer('Adagrad'), **kwargs}


def build(api, declared):
    """The `TPUEmbedding` of a declaration.

    Args:
      api: a module or namespace with the classes of `tensorflow.python.tpu.tpu_embedding`.
      declared: see the module.
    """
    given = dict(declared)
    hosts, cores = given.pop('hosts'), given.pop('cores')
    tables = {name: api.TableConfig(**_table_arguments(api, config))
              for name, config in given.pop('table_to_config_dict').items()}
    features = {name: api.FeatureConfig(**config)
                for name, config in given.pop('feature_to_config_dict').items()}
    return api.TPUEmbedding(
        tables, features, mode=getattr(api, given.pop('mode')),
        optimization_parameters=_make(api, given.pop('optimization_parameters')),
        device_config=api.DeviceConfig(hosts, hosts * cores, '/job:worker'), **given)


def _table_arguments(api, config):
    arguments = dict(config)
    if 'learning_rate_fn' in arguments:
        arguments['learning_rate_fn'] = FUNCTIONS[arguments['learning_rate_fn']]
    if 'optimization_parameters' in arguments:
        arguments['optimization_parameters'] = _make(api, arguments['optimization_parameters'])
    return arguments


def _make(api, declared):
    if declared is None:
        return None
    name, arguments = declared
    return getattr(api, name)(**arguments)


def renumbered(config):
    """The config with learning-rate tags in order of first appearance: the original's vary."""
    tags = {}
    for table in config.table_descriptor:
        rate = table.optimization_parameters.learning_rate
        if rate.WhichOneof('learning_rate') == 'dynamic':
            rate.dynamic.tag = tags.setdefault(rate.dynamic.tag, len(tags))
    return config


def _census(**kwargs):
    """The job of tools/examples/census_tpu_job.py."""
    sizes = {'education_occupation_shared_embedding': (32, 8, 'sum'), 'workclass': (8, 4, 'mean'),
             'native_country': (16, 4, 'mean'), 'marital_status': (7, 4, 'mean'),
             'relationship': (6, 4, 'mean')}
    tables = {f'tbl_{name}': {'vocabulary_size': rows, 'dimension': width, 'combiner': combiner}
              for name, (rows, width, combiner) in sizes.items()}
    features = {name: {'table_id': f'tbl_{name}'} for name in list(sizes)[1:]}
    features |= {name: {'table_id': 'tbl_education_occupation_shared_embedding'}
                 for name in ('education', 'occupation')}
    return {**declaration(tables, features, **kwargs), 'batch_size': 512}


def _several():
    """Own optimizers, rates constant and dynamic, limits, sequences, more hosts than rows."""
    tables = {
        'a': {'vocabulary_size': 1, 'dimension': 4, 'combiner': 'sum',
              'optimization_parameters': optimizer('StochasticGradientDescent', .5,
                                                   clip_gradient_min=-1., clip_gradient_max=0.)},
        'b': {'vocabulary_size': 10, 'dimension': 5, 'learning_rate': .25},
        'c': {'vocabulary_size': 7, 'dimension': 4, 'learning_rate_fn': 0},
        'd': {'vocabulary_size': 7, 'dimension': 4, 'learning_rate_fn': 1,
              'optimization_parameters': optimizer(
                  'Adagrad', clip_weight_min=-2., weight_decay_factor=.01,
                  multiply_weight_decay_factor_by_learning_rate=True)},
        'e': {'vocabulary_size': 7, 'dimension': 4, 'learning_rate_fn': 0}}
    features = {'z': {'table_id': 'a'}, 'y': {'table_id': 'b', 'max_sequence_length': 3},
                'x': {'table_id': 'b'}, 'w': {'table_id': 'c'}, 'v': {'table_id': 'd'},
                'u': {'table_id': 'e', 'max_sequence_length': 2}}
    return declaration(tables, features, hosts=2, cores=2, batch_per_core=2,
                       partition_strategy='mod', pipeline_execution_with_tensor_core=True,
                       by=optimizer('Adagrad', use_gradient_accumulation=False))


def all_declarations():
    """Declarations by name: every optimizer, field, strategy, and 1 to 16 hosts."""
    cases = {
        'census_training_1x1': _census(by=optimizer('Adagrad', .05)),
        'census_training_2x4_mod': _census(hosts=2, cores=4, by=optimizer('Adagrad', .05),
                                           partition_strategy='mod'),
        'census_inference_4x2': _census(hosts=4, cores=2, mode='INFERENCE'),
        'several_optimizers_2x2': _several()}
    for name, own in OPTIMIZERS.items():
        cases[f'{name}_defaults'] = declaration(by=optimizer(name))
        cases[f'{name}_all_arguments'] = declaration(by=optimizer(name, 0.5, **own))
        cases[f'{name}_of_a_table'] = declaration(tables={
            'user': {'vocabulary_size': 7, 'dimension': 1, 'learning_rate': .5,
                     'optimization_parameters': optimizer(name)},
            'item': {'vocabulary_size': 9, 'dimension': 1, 'learning_rate_fn': 2}})
        cases[f'{name}_inference'] = declaration(mode='INFERENCE', tables={
            'user': {'vocabulary_size': 7, 'dimension': 1,
                     'optimization_parameters': optimizer(name)},
            'item': {'vocabulary_size': 9, 'dimension': 1}})
    for option, arguments in OPTIONS.items():
        for name in ('Adagrad', 'StochasticGradientDescent', 'Ftrl'):
            cases[f'{name}_{option}'] = declaration(by=optimizer(name, **arguments))
    for strategy in ('div', 'mod'):
        for hosts, cores in ((1, 8), (2, 1), (3, 2), (5, 4), (8, 8), (16, 8)):
            cases[f'{strategy}_{hosts}x{cores}'] = declaration(
                hosts=hosts, cores=cores, partition_strategy=strategy)
    length = {'table_id': 'user', 'max_sequence_length': 6}
    cases |= {
        'sequences': declaration(hosts=2, cores=2, features={
            'a': length, 'b': {**length, 'max_sequence_length': 1}, 'c': {'table_id': 'item'}}),
        'weights': declaration(features={
            'a': {'table_id': 'user', 'weight_key': 'w'}, 'b': {'table_id': 'item'}}),
        'hot_ids': declaration(tables={
            'user': {'vocabulary_size': 7, 'dimension': 1, 'hot_id_replication': True},
            'item': {'vocabulary_size': 9, 'dimension': 1}}),
        'profile': declaration(profile_data_directory='gs://bucket/profile'),
        'pipelined': declaration(pipeline_execution_with_tensor_core=True),
        'pipelined_inference': declaration(mode='INFERENCE',
                                           pipeline_execution_with_tensor_core=True),
        'rate_zero_of_the_optimizer': declaration(by=optimizer('Adagrad', 0.)),
        'combiners': declaration(
            tables={str(combiner): {'vocabulary_size': 9, 'dimension': 128, 'combiner': combiner}
                    for combiner in ('mean', 'sum', 'sqrtn', None)},
            features={f'f_{combiner}': {'table_id': str(combiner)}
                      for combiner in ('mean', 'sum', 'sqrtn', None)}),
        'dynamic_rates': declaration(
            tables={f't{k}': {'vocabulary_size': 9, 'dimension': 8, 'learning_rate_fn': k % 3}
                    for k in (2, 0, 1, 4, 3)},
            features={f'f{k}': {'table_id': f't{k}'} for k in range(5)}),
        'the_largest_vocabulary': declaration(tables={
            'user': {'vocabulary_size': 2**31 - 1, 'dimension': 65536},
            'item': {'vocabulary_size': 1, 'dimension': 1}}, hosts=16, cores=8)}
    return cases
