"""A script that failed gets the flag, name or package that would have helped."""

import sys

import pytest
import tensorflow as tf  # noqa: F401 - The code of the cases uses it.

from estimator_tpu_embedding.compat.hints import flag_that_helps


def test_a_missing_tfrs_is_named_with_the_extra(monkeypatch):
    # Python reports a module of None as it reports one that is not there.
    monkeypatch.setitem(sys.modules, 'tensorflow_recommenders', None)
    with pytest.raises(ImportError) as caught:
        exec('import tensorflow_recommenders')
    assert flag_that_helps(caught.value) == (
        'TensorFlow Recommenders is not installed: pip install ".[tfrs]" in the checkout of this '
        'package, or pip install tensorflow-recommenders')


OF_TF1 = ('{} is a name of TensorFlow 1: "etpe run --tf1" makes "import tensorflow" give what it '
          'gave then')


@pytest.mark.parametrize('code, hint', [
    ('tf.Session()', OF_TF1.format('tf.Session')),
    ('tf.nn.rnn_cell.LSTMCell', OF_TF1.format('tf.nn.rnn_cell')),
    ('from tensorflow import placeholder', OF_TF1.format('tf.placeholder')),
    ('tf.contrib.tpu', 'etpe run --contrib'), ('from tensorflow import contrib', 'run --contrib'),
    ('from tensorflow.contrib.tpu.python.tpu import tpu_config', 'etpe run --contrib')])
def test_a_name_of_tensorflow_1_or_its_contrib_is_answered_with_its_flag(code, hint):
    with pytest.raises((AttributeError, ImportError)) as caught:
        exec(code)
    assert hint in flag_that_helps(caught.value)


@pytest.mark.parametrize('code', [
    'tf.nonsense', 'tf.compat.v1.nonsense', '1 / 0', '"".nonsense', 'import nonsense',
    'from tensorflow import nonsense', 'import tensorflow.nonsense', 'from re import nonsense'])
def test_other_errors_are_answered_with_none(code):
    with pytest.raises(Exception) as caught:
        exec(code)
    assert flag_that_helps(caught.value) is None
