"""What the emulated TPUStrategy feeds, and refuses: datasets without tuners, ids that TPUs take."""

import re

import pytest
import tensorflow as tf
from harness import processes, replicas

from estimator_tpu_embedding.errors import CallError, InputShapeError

api = tf.tpu.experimental.embedding
TO_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)
TUNER = {'TF_CPP_VMODULE': 'model=2', 'TF_CPP_MIN_LOG_LEVEL': '0'}
"""TensorFlow's tuner then reports each of its looks at a dataset; the first is its first act."""

SCRIPT = '''
import sys
from estimator_tpu_embedding import install
hosts, cores = map(int, sys.argv[1:])
install(hosts=hosts, cores=cores)
import tensorflow as tf
strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver(''))
replicas = strategy.num_replicas_in_sync

def numbers(limit):
    return tf.data.Dataset.range(limit).map(
        lambda x: tf.debugging.check_numerics(1 / (90. * replicas - tf.cast(x, tf.float32)), 'bad'),
        num_parallel_calls=tf.data.AUTOTUNE).batch(replicas)

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


@pytest.mark.soak
@pytest.mark.parametrize('hosts, cores', [(1, 2), (2, 4)])
def test_no_iterator_has_a_tuner_however_it_ends(tmp_path, hosts, cores):
    path = tmp_path / 'script.py'
    path.write_text(SCRIPT)
    ended = processes.run_python(path, hosts, cores, **TUNER)
    assert ended.returncode == 0 and '(16, 1)' in ended.stdout
    assert not re.findall(r'model\.cc.*', ended.stderr)


@pytest.mark.soak
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


KINDS = {
    'dense': lambda ids: ids, 'column': lambda ids: ids[:, None],
    'sparse': lambda ids: tf.sparse.from_dense(ids[:, None]),
    'ragged': lambda ids: tf.RaggedTensor.from_row_lengths(ids, [1, 1])}


class Job:
    """A table of 8 rows of zeros, trained by SGD(1) with gradients of ones; 2 samples a replica."""

    def __init__(self, strategy='tpu 2'):
        self.strategy = replicas.make(strategy)
        table = api.TableConfig(8, 1, tf.zeros_initializer(), combiner='sum', name='t')
        self.embedding = replicas.embedding_under(
            self.strategy, {'f': api.FeatureConfig(table, output_shape=[2])}, api.SGD(1.))
        self.embedding.build()

    def look_up(self, ids, enqueue=None):
        """The part of a step that a replica makes."""
        (enqueue or self.embedding.enqueue)({'f': ids})
        self.train()

    def train(self):
        activations = self.embedding.dequeue()
        self.embedding.apply_gradients({'f': tf.ones_like(activations['f'])})

    def rows(self):
        return replicas.values_of(self.embedding)['t']['parameters'][:, 0].tolist()

    def iterator(self, kind='dense'):
        """Gives replica 0 the ids 1 and 2, replica 1 the ids 3 and 4."""
        return iter(self.strategy.distribute_datasets_from_function(
            lambda _: tf.data.Dataset.range(1, 5).batch(2, drop_remainder=True).map(KINDS[kind]),
            TO_HOST))


@pytest.fixture(scope='module')
def job():
    return Job()


def by_run(job, inside):
    """A function of a step; `inside` says where it enqueues."""
    @tf.function
    def step(iterator):
        ids = next(iterator)
        if inside:
            job.strategy.run(job.look_up, (ids,))
        else:
            job.embedding.enqueue({'f': ids})
            job.strategy.run(job.train)
    return step


@pytest.mark.parametrize('inside', [False, True])
@pytest.mark.parametrize('kind', KINDS)
def test_ids_that_stay_on_the_host_are_looked_up(job, inside, kind):
    before = job.rows()
    by_run(job, inside)(job.iterator(kind))
    assert [b - a for a, b in zip(job.rows(), before)] == [0, 1, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize('kind', KINDS)
def test_ids_that_are_computed_in_the_step_are_refused(job, kind):
    iterator = job.iterator('column')

    @tf.function
    def step(iterator):
        job.strategy.run(lambda ids: job.look_up(KINDS[kind](ids[:, 0] % 2)), (next(iterator),))

    with pytest.raises(InputShapeError, match=r'E539 enqueue: Received input tensor f which is the '
                       r'output of op .* \(type .*\) which does not have the `_tpu_input_identity` '
                       'attr. .*taken directly from the arguments of the function called by stra'):
        step(iterator)


@pytest.mark.parametrize('within', [
    lambda call, ids: tf.function(call)(ids),
    lambda call, ids: tf.cond(tf.size(ids) > 1, lambda: call(ids) or 0, lambda: 0),
    lambda call, ids: tf.while_loop(lambda i: i < 1, lambda i: [call(ids) or i + 1], [0])])
def test_an_enqueue_in_a_part_of_the_step_is_refused(job, within):
    iterator = job.iterator()

    @tf.function
    def step(iterator):
        job.strategy.run(lambda ids: job.look_up(ids, lambda features: within(
            lambda own: job.embedding.enqueue({'f': own}), features['f'])), (next(iterator),))

    with pytest.raises(CallError, match='E540 enqueue: Current graph .* does not match graph which '
                       'contains TPUReplicateContext .*is called inside control flow or a tf.fun'):
        step(iterator)
