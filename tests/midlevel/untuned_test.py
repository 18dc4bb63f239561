"""Iterators of the emulated TPUStrategy end at once, since no thread tunes their datasets."""

import re

import pytest
import tensorflow as tf
from harness import processes, replicas
from harness.parts import soak_except

pytestmark = pytest.mark.soak

TO_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)
TUNER = {'TF_CPP_VMODULE': 'model=2', 'TF_CPP_MIN_LOG_LEVEL': '0'}
"""TensorFlow's tuner then reports each of its looks at a dataset; the first is its first act."""

SCRIPT = '''
import sys
from estimator_tpu_embedding import install
hosts, cores, tuned = map(int, sys.argv[1:])
install(hosts=hosts, cores=cores)
import tensorflow as tf
strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver(''))
replicas = strategy.num_replicas_in_sync

def numbers(limit):
    options = tf.data.Options()
    if tuned:
        options.autotune.enabled = True
    return tf.data.Dataset.range(limit).map(
        lambda x: tf.debugging.check_numerics(1 / (90. * replicas - tf.cast(x, tf.float32)), 'bad'),
        num_parallel_calls=tf.data.AUTOTUNE).batch(replicas).with_options(options)

def by_dataset(data, options):
    return strategy.experimental_distribute_dataset(data, options)

def by_function(data, options):
    return strategy.distribute_datasets_from_function(
        lambda context: data.unbatch().batch(1), options)

@tf.function
def steps(iterator, count):
    for _ in tf.range(count):
        strategy.run(lambda x: x + 1, (next(iterator),))

@tf.function
def whole(dataset):
    for x in dataset:
        strategy.run(lambda x: x + 1, (x,))

alive = []
for fetch, distribute in ((True, by_dataset), (False, by_function)):
    options = tf.distribute.InputOptions(experimental_fetch_to_device=fetch)
    data = distribute(numbers(2 ** 40), options)
    iterator = iter(data)
    steps(iterator, 40)
    del iterator                          # In the middle.
    alive.append(iter(data))
    steps(alive[-1], 40)                  # At the end of the process.
    try:
        steps(iter(data), 300)            # By an error.
    except tf.errors.InvalidArgumentError as error:
        assert 'bad' in str(error)
    else:
        raise AssertionError('no error')
    data = distribute(numbers(40 * replicas), options)
    print(sum(1 for _ in data))           # By its end.
    whole(data)                           # Within a function.

with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[1])])
    model.compile('sgd', 'mse')
x, y = tf.ones([16, 1]), tf.ones([16, 1])
model.fit(x, y, batch_size=8, epochs=2, verbose=0)
model.evaluate(numbers(16).map(lambda x: (x[:, None], x)), verbose=0)
print(model.predict(x, batch_size=8, verbose=0).shape)
'''


@pytest.mark.parametrize('hosts, cores', soak_except([(1, 1), (1, 2), (2, 4)], 1))
def test_no_iterator_has_a_tuner_however_it_ends(tmp_path, hosts, cores):
    path = tmp_path / 'script.py'
    path.write_text(SCRIPT)
    ended = processes.run_python(path, hosts, cores, 0, **TUNER)
    assert ended.returncode == 0 and '(16, 1)' in ended.stdout
    assert not re.findall(r'model\.cc.*', ended.stderr)


@pytest.mark.parametrize('options', [None, TO_HOST])
def test_elements_and_their_order_are_those_of_a_mirrored_strategy(options):
    def generate():
        yield from range(22)

    data = tf.data.Dataset.from_generator(
        generate, output_signature=tf.TensorSpec([], tf.int64)).map(lambda x: 3 * x).batch(8)

    found = elements(replicas.make('tpu 2'), data, options)
    assert found == elements(replicas.make('mirrored 2'), data, options)
    assert found[1] == [[24, 27, 30, 33], [36, 39, 42, 45]]


@pytest.mark.parametrize('options', [None, TO_HOST])
def test_the_last_batch_of_a_file_is_divided_like_the_others(tmp_path, options):
    """TensorFlow takes half a batch of 8 from the file of each host, if it sees the 8."""
    for name, first in (('a', 0), ('b', 100)):
        (tmp_path / name).write_text('\n'.join(map(str, range(first, first + 12))))
    data = tf.data.TextLineDataset([str(tmp_path / 'a'), str(tmp_path / 'b')]).map(
        lambda line: tf.strings.to_number(line, tf.int64)).batch(8)
    assert elements(replicas.make('tpu 4'), data, options) == [
        [[first, first + 1], [first + 2, first + 3], [first + 100, first + 101],
         [first + 102, first + 103]] for first in (0, 4, 8)]


def elements(strategy, data, options):
    """What each replica gets of each element."""
    return [[value.numpy().tolist() for value in strategy.experimental_local_results(one)]
            for one in strategy.experimental_distribute_dataset(data, options)]
