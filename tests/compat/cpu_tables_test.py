"""One line says that the model's optimizer trains the tables of a TFRS layer under CPU strategies.

In processes of their own: `install()` is global, and the line comes once.
"""

import pytest
from harness.processes import run_python

BEGINNING = '''
import sys
import estimator_tpu_embedding as ete
ete.install(hosts=1, cores=2)
assert 'tensorflow_recommenders' not in sys.modules
import tensorflow as tf
import tensorflow_recommenders as tfrs

api = tf.tpu.experimental.embedding
features, labels = {'watched': tf.range(4)}, tf.ones([4, 1])
mirrored = lambda: tf.distribute.MirroredStrategy(['/cpu:0'])
tpu = lambda: tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver(''))

def model_under(strategy, optimizer=api.Adagrad(.1)):
    with strategy.scope():
        layer = tfrs.layers.embedding.TPUEmbedding({'watched': api.FeatureConfig(
            api.TableConfig(10, 2, tf.ones_initializer(), combiner='sum', name='video'))},
            optimizer)
        inputs = {'watched': tf.keras.Input((), batch_size=4, dtype=tf.int32)}
        dense = tf.keras.layers.Dense(1, kernel_initializer='ones')
        model = tf.keras.Model(inputs, dense(layer(inputs)['watched']))
        model.compile(tf.keras.optimizers.legacy.SGD(.25), 'mse')
    return model
'''
SAID = ('WARNING:tensorflow:W008 table "video": the optimizer that applies the model\'s gradients '
        'trains it, and not its own by the rules of the TPU; got {}.  For those, create the model '
        'in the scope of a tf.distribute.TPUStrategy, under etpe run --hosts H --cores C.')


def lines(code):
    """The lines about who trains which a program logs."""
    done = run_python('-c', BEGINNING + code, loaded=True)
    assert done.returncode == 0
    return [line for line in done.stderr.splitlines() if 'W008' in line]


@pytest.mark.parametrize('strategy, named', [
    ('tf.distribute.get_strategy()', 'no strategy'), ('mirrored()', 'MirroredStrategy')])
def test_the_first_fit_says_it_once_and_trains_by_the_optimizer_of_keras(strategy, named):
    """Of 4 samples each has an error of 2 - 1, and each row a gradient of 2 * 1 / 4."""
    assert lines(f'''
model = model_under({strategy})
model.evaluate(features, labels, batch_size=4, verbose=0)
model.predict(features, batch_size=4, verbose=0)
print('fit', file=sys.stderr, flush=True)
model.fit(features, labels, batch_size=4, verbose=0)
rows = model.layers[1].weights[0].numpy()
assert rows[0, 0] == 1 - .25 * .5, rows
assert rows[4, 0] == 1, rows
model.fit(features, labels, batch_size=4, verbose=0)
model_under({strategy}).fit(features, labels, batch_size=4, verbose=0)
''') == [SAID.format(named)]


@pytest.mark.parametrize('what', ['evaluate', 'TPUStrategy'])
def test_nothing_is_said_where_no_declared_optimizer_is_left_out(what, tmp_path):
    assert lines({
        'evaluate': "model_under(mirrored()).evaluate(features, labels, batch_size=4, verbose=0)",
        'predict': "model_under(mirrored()).predict(features, batch_size=4, verbose=0)",
        'export': f"model_under(tf.distribute.get_strategy()).save({str(tmp_path)!r})",
        'no optimizer': "model_under(mirrored(), None).fit(features, labels, batch_size=4)",
        'TPUStrategy': '''
strategy = tpu()
model = model_under(strategy)
data = strategy.distribute_datasets_from_function(
    lambda _: tf.data.Dataset.from_tensors(({'watched': tf.range(2)}, tf.ones([2, 1]))).repeat(),
    tf.distribute.InputOptions(experimental_fetch_to_device=False))
model.fit(data, steps_per_epoch=2, verbose=0)
'''}[what]) == []
