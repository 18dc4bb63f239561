"""Declares embeddings of TF2 whose configs are compared with those of the original."""

import types


def first_rate():
    """A dynamic learning rate."""
    return .5


def second_rate():
    """Another one."""
    return .25


def declarations(api):
    """By name: feature_config, optimizer, and the size of the system with the output shapes.

    Args:
      api: `tf.tpu.experimental.embedding` of any version.
    """
    return {'optimizers': _optimizers(api), 'features': _features(api),
            'bare': (api.FeatureConfig(api.TableConfig(2, 3)), api.Adagrad(), _size([[2]]))}


def _size(output_shapes, num_hosts=1, num_cores=1, pipelined=False):
    return types.SimpleNamespace(output_shapes=output_shapes, num_hosts=num_hosts,
                                 num_cores=num_cores, pipelined=pipelined)


def _optimizers(api):
    """Every optimizer with its defaults, then with all that it takes."""
    common = {'learning_rate': .3, 'clip_weight_min': -1., 'clip_weight_max': 2.,
              'weight_decay_factor': .1, 'multiply_weight_decay_factor_by_learning_rate': True,
              'clipvalue': (-.5, None), 'low_dimensional_packing_status': True}
    optimizers = [
        api.SGD(), api.SGD(**common), api.Adagrad(), api.Adagrad(**common),
        api.AdagradMomentum(), api.AdagradMomentum(
            **common, momentum=.9, use_nesterov=True, exponent=3., beta2=.8, epsilon=1e-3),
        api.FTRL(), api.FTRL(
            **common, learning_rate_power=-.25, l1_regularization_strength=.1,
            l2_regularization_strength=.2, beta=.3, multiply_linear_by_learning_rate=True,
            allow_zero_accumulator=True),
        api.Adam(), api.Adam(**common, beta_1=.8, beta_2=.7, epsilon=1e-3, lazy_adam=False,
                             sum_inside_sqrt=False),
        api.SGD(use_gradient_accumulation=False), api.Adam(weight_decay_factor=0.),
        api.Adagrad(weight_decay_factor=.2)]
    tables = [api.TableConfig(10 + number, 4, optimizer=optimizer, name=f'z{99 - number}')
              for number, optimizer in enumerate(optimizers)]
    return ([api.FeatureConfig(table) for table in tables], None,
            _size([[8]] * len(tables), num_hosts=2, num_cores=16))


def _features(api):
    """Tables in order of appearance, tags of rates, names, shapes, quantization."""
    small = api.TableConfig(3, 2, quantization_config=api.QuantizationConfig(8, -1., 1.5))
    shared = api.TableConfig(100, 8, optimizer=api.Adagrad(second_rate), combiner='sum', name='b')
    other = api.TableConfig(7, 1, optimizer=api.Adam(first_rate), name='a')
    features = {
        'z': api.FeatureConfig(other, name='named'),
        'a': [api.FeatureConfig(shared, max_sequence_length=5, name='named'),
              api.FeatureConfig(small, output_shape=[2, 3, 4])],
        'm': (api.FeatureConfig(shared), )}
    return features, api.SGD(first_rate), _size(
        [[6, 5], [2, 3, 4], [6], [6]], num_hosts=4, num_cores=8, pipelined=True)
