"""Models with TFRS's layer that trained on emulated TPUs are served by TensorFlow alone."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas
from harness import tfrs_models as models
from harness.processes import run_harness

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures('tfrs_names')]


def trained(shape, strategy, of_tables=None):
    """(strategy, model, optimizer) after two steps, and what the model predicts."""
    made = replicas.make(strategy)
    with replicas.scope(made):
        model, optimizer = models.make(
            'adagrad', shape == 'functional', of_tables=of_tables)
    step = models.trainer(model, optimizer, made)
    step(0)
    step(1)
    return made, model, optimizer, models.predictor(model, made)(models.PREDICTED)


def serving(look_up):
    """A function of users and videos, both dense, as a server gets them."""
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, 'user'),
                                  tf.TensorSpec([None, models.MOST], tf.int64, 'video')])
    def serve(user, video):
        above = tf.sparse.from_dense(video + 1)  # Which leaves zeros out.
        return {'predictions': look_up({'user': user, 'video': tf.SparseTensor(
            above.indices, above.values - 1, above.dense_shape)})}
    return serve


def export(folder, model, config):
    """Saves a model as Keras does, and with functions that look up in each of the two ways.

    Args:
      folder: where.
      model: in the scope of whose strategy this is called.
      config: FeatureConfigs with the tables that its layer was given.
    """
    def by_config(inputs):
        found = models.embedding_of(model)(inputs, serving_config=config)
        return model.get_layer('dense')(tf.concat([found['user'], found['video']], -1))

    model.save(folder / 'keras')
    tf.saved_model.save(model, str(folder / 'signatures'), signatures={
        'by_config': serving(by_config), 'as_it_is': serving(model)})


def serve_alone(folder, predictions):
    """What TensorFlow alone has called, each with these predictions."""
    np.save(folder / 'predictions.npy', predictions)
    ended = run_harness('tfrs_models', 'serve', folder)
    assert ended.returncode == 0
    return ended.stdout.splitlines()


@pytest.mark.parametrize('shape, strategy, size', [
    ('subclassed', 'tpu 8', 8), ('functional', 'tpu 2', 4)])
def test_a_model_is_exported_from_training(shape, strategy, size, tmp_path):
    """A functional model of Keras has the batch size of a replica."""
    tables = models.tables()
    made, model, optimizer, predictions = trained(shape, strategy, of_tables=tables)
    before = models.values_of(model)
    with made.scope():
        export(tmp_path, model, models.features(tables))
    assert serve_alone(tmp_path, predictions) == [
        f'keras serving_default {size}', 'signatures as_it_is 8', 'signatures by_config 8']
    for name, value in models.values_of(model).items():
        np.testing.assert_array_equal(value, before[name])
    models.trainer(model, optimizer, made)(2)
    assert np.any(models.values_of(model)['video'] != before['video'])


@pytest.mark.parametrize('shape, strategy', [
    ('subclassed', 'tpu 2'), ('functional', 'tpu 8')])
def test_a_model_made_under_no_strategy_is_exported_from_a_checkpoint(shape, strategy, tmp_path):
    _, model, _, predictions = trained(shape, strategy)
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / 'checkpoint'))
    tables = models.tables()
    model, _ = models.make('adagrad', shape == 'functional', of_tables=tables)
    tf.train.Checkpoint(model=model).restore(path).expect_partial()
    np.testing.assert_allclose(model(models.inputs(models.PREDICTED)), predictions, 1e-6, 1e-6)
    export(tmp_path, model, models.features(tables))
    assert serve_alone(tmp_path, predictions) == [
        'keras serving_default 8', 'signatures as_it_is 8', 'signatures by_config 8']
