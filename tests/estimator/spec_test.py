import inspect

import pytest
import tensorflow.compat.v1 as tf

import estimator_tpu_embedding as ete


def make(mode='eval', **kwargs):
    return ete.TPUEstimatorSpec(mode=mode, **{'loss': tf.constant(1.), **kwargs})


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def test_the_fields_are_the_arguments_in_their_order():
    assert ete.TPUEstimatorSpec._fields == tuple(
        inspect.signature(ete.TPUEstimatorSpec).parameters)


@pytest.mark.parametrize('kwargs, error, text', [
    ({'mode': 'train'}, ValueError, 'Missing train_op.'),
    ({'eval_metrics': 3}, ValueError, 'eval_metrics should be tuple or list'),
    ({'eval_metrics': (1,)}, ValueError, 'eval_metrics should have two elements.'),
    ({'eval_metrics': (1, [])}, TypeError, 'eval_metrics[0] should be callable.'),
    ({'eval_metrics': (abs, 3)}, ValueError,
     'eval_metrics[1] should be tuple or list, or dict.'),
    ({'eval_metrics': (lambda a, b: 1, [1])}, RuntimeError, 'In TPUEstimatorSpec.eval_metrics, '
     'length of tensors 1 does not match method args of the function, which takes 2.'),
    ({'host_call': 3}, ValueError, 'host_call should be tuple or list'),
    *[({hooks: [1]}, TypeError, 'All hooks must be SessionRunHook instances, given: 1')
      for hooks in ('training_hooks', 'evaluation_hooks', 'prediction_hooks')]])
def test_bad_values_get_the_errors_of_the_original(kwargs, error, text):
    with pytest.raises(error) as caught:
        make(**kwargs)
    assert text in str(caught.value)


def test_a_host_call_is_a_hook_of_every_mode_and_the_scaffold_is_made_of_its_function():
    scaffold = tf.train.Scaffold()
    made = make(host_call=(lambda x: [x], [tf.ones([1])]), scaffold_fn=lambda: scaffold
                ).as_estimator_spec()
    assert made.scaffold is scaffold
    hooks = made.training_hooks, made.evaluation_hooks, made.prediction_hooks
    assert [len(each) for each in hooks] == [1, 1, 1]
