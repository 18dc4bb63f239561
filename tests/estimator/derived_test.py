"""Private names that derived estimators import do what they did."""

import collections

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.estimator.derived import _InputsWithStoppingSignals, _TPUStopAtStepHook

Counter = collections.namedtuple('Counter', 'value unit')
COUNT = Counter(2, 'count')


def test_a_derived_estimator_may_make_the_hook_that_ends_its_training(tmp_path):
    class Derived(ete.TPUEstimator):
        def _convert_train_steps_to_hooks(self, steps, max_steps):
            return [_TPUStopAtStepHook(COUNT, steps, max_steps)]

    columns = [jobs.embedding('f')]
    estimator = Derived(
        jobs.linear_model_fn(columns), config=jobs.run_config(tmp_path), train_batch_size=2,
        embedding_config_spec=ete.EmbeddingConfigSpec(columns, ete.AdagradParameters(.5)))
    estimator.train(jobs.input_fn_of(
        [{'f': np.array([1, 2]), 'label': np.ones(2, np.float32)}] * 4), steps=3)
    assert estimator.get_variable_value('global_step') == 3


@pytest.mark.parametrize('arguments, text', [
    ((COUNT,), 'One of `num_steps` or `final_step` must be specified.'),
    ((COUNT, 1, 2), 'Only one of `num_steps` or `final_step` can be specified.'),
    ((Counter(1, 'hours'), 1), 'Only `count` or `seconds` are accepted')])
def test_the_hook_refuses_what_the_original_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        _TPUStopAtStepHook(*arguments)


def drawn(dataset, **options):
    """Features, labels and signals of each batch, up to the end."""
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = _InputsWithStoppingSignals(dataset(), 2, **options)
        features, labels = inputs.features_and_labels()
        with pytest.raises(RuntimeError, match='previous inputs have not been properly consumed'):
            inputs.features_and_labels()
        fetches = [features, [] if labels is None else labels, inputs.signals()]
        with pytest.raises(RuntimeError, match='current inputs have not been properly generated'):
            inputs.signals()
        session.run(inputs.dataset_initializer())
        found = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(tf.nest.map_structure(np.ndarray.tolist, session.run(fetches)))
        return found


def test_a_batch_that_asks_to_stop_follows_the_data():
    go, stop = {'stopping': [[False]] * 2}, {'stopping': [[True]] * 2}
    assert drawn(lambda: tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]])) == [
        [[1, 2], [], go], [[3, 4], [], go], [[1, 2], [], stop]]


def test_a_smaller_batch_is_padded_and_masked():
    def dataset():
        return tf.data.Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6])).batch(2)

    first, second, *ends = drawn(dataset, add_padding=True, num_invocations_per_step=2)
    assert first[:2] + [first[2]['padding_mask']] == [[1, 2], [4, 5], [0, 0]]
    assert second[:2] + [second[2]['padding_mask']] == [[3, 0], [6, 0], [0, 1]]
    assert [end[2]['padding_mask'] for end in ends] == [[1, 1]] * 3
