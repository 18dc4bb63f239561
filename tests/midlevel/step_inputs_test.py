"""Under the emulated TPUStrategy, ids that no TPU could take are refused in TensorFlow's words."""

import pytest
import tensorflow as tf
from harness import replicas

from estimator_tpu_embedding.errors import CallError, InputShapeError

api = tf.tpu.experimental.embedding
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
            tf.distribute.InputOptions(experimental_fetch_to_device=False)))


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


@pytest.mark.parametrize('strategy', ['none', 'mirrored 2'])
def test_what_is_no_tpu_takes_ids_from_anywhere(strategy):
    """TensorFlow has no such object there, so nothing says what it would refuse."""
    job = Job(strategy)

    @tf.function
    def step(ids):
        job.strategy.run(lambda ids: job.look_up(ids % 4), (ids,))

    step(tf.constant([5, 6]))
    count = job.strategy.num_replicas_in_sync
    assert job.rows()[:4] == [0, -count, -count, 0]
