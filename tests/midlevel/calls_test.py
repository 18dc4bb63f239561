"""Programs that count the names of their calls: the k-th new name of each replica is one call."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs

pytestmark = pytest.mark.soak

api = tf.tpu.experimental.embedding
ROWS, BATCH = 32, 2


class Counted:
    """One table with SGD(1) whose activations get gradients of ones; names come from a counter.

    Attributes:
      made: the strategy.
      table: what the table must be.
      names: the names so far, in the order of the calls of all replicas.
    """

    def __init__(self, strategy):
        self.made, self.names = replicas.make(strategy), []
        self.table = np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2)
        config = api.TableConfig(ROWS, 2, lambda *_, **__: tf.constant(self.table), name='t')
        self.embedding = replicas.embedding_under(
            self.made, {'a': api.FeatureConfig(config, output_shape=[BATCH])}, api.SGD(1.))

    def next_name(self):
        """The number of names so far and one, as a string."""
        self.names.append(str(len(self.names) + 1))
        return self.names[-1]

    def program(self, step):
        """A tf.function that calls `step` in every replica, and returns all activations."""
        @tf.function(autograph=False)
        def program(*args):
            return tfrs.joined(self.made, self.made.run(step, args))
        return program

    def check(self, found, ids):
        """Compares activations with the rows of the global batch `ids`."""
        np.testing.assert_array_equal(found, self.table[ids])

    def train(self, ids):
        """Moves the rows of `ids` as SGD with gradients of ones does."""
        np.subtract.at(self.table, ids, 1.)

    def check_table(self):
        np.testing.assert_array_equal(
            replicas.values_of(self.embedding)['t']['parameters'], self.table)


def batches(job, count, seed=0, size=BATCH):
    """Global batches of ids."""
    random = np.random.default_rng(seed)
    return [random.integers(ROWS, size=size * job.made.num_replicas_in_sync)
            for _ in range(count)]


def split(job, ids):
    return replicas.split(job.made, ids)


def on_host(job, *values):
    """Global batches as values of replicas that are not on the devices of replicas."""
    return [job.made.experimental_distribute_values_from_function(
        lambda context, one=one: np.split(one, len(one) // BATCH)[
            context.replica_id_in_sync_group]) for one in values]


@pytest.fixture(params=['tpu 2', 'tpu 8', 'mirrored 2'])
def job(request):
    return Counted(request.param)


def test_two_look_ups_before_the_first_gradients_do_not_mix(job):
    def nested(first, second):
        outer, inner = job.next_name(), job.next_name()
        job.embedding.enqueue({'a': first}, name=outer)
        one = job.embedding.dequeue(name=outer)['a']
        job.embedding.enqueue({'a': second}, name=inner)
        two = job.embedding.dequeue(name=inner)['a']
        job.embedding.apply_gradients({'a': 2 * tf.ones_like(two)}, name=inner)
        job.embedding.apply_gradients({'a': tf.ones_like(one)}, name=outer)
        return one, two

    step = job.program(nested)
    for first, second in zip(batches(job, 3), batches(job, 3, 1)):
        found = step(split(job, first), split(job, second))
        job.check(found[0], first)
        job.check(found[1], second)
        job.train(first)
        job.train(second)
        job.train(second)
    job.check_table()
    assert len(job.names) == 2 * job.made.num_replicas_in_sync


def test_names_outside_of_replicas_are_the_same_in_all_whatever_their_order(job):
    """A program hands over replica by replica, and not in the same order to each."""
    number = job.made.num_replicas_in_sync

    @tf.function(autograph=False)
    def train(first, second):
        for replica in range(number):
            own = {name: job.made.experimental_local_results(value)[replica]
                   for name, value in (('first', first), ('second', second))}
            for name in sorted(own, reverse=replica % 2):
                job.embedding.enqueue({'a': own[name]}, name=name, device=f'/TPU:{replica}')

        def step():
            found = []
            for name in ('second', 'first'):
                found.append(job.embedding.dequeue(name=name)['a'])
                job.embedding.apply_gradients({'a': tf.ones_like(found[-1])}, name=name)
            return found
        return tfrs.joined(job.made, job.made.run(step))

    for first, second in zip(batches(job, 2), batches(job, 2, 1)):
        found = train(*on_host(job, first, second))
        job.check(found[0], second)
        job.train(second)
        job.check(found[1], first)
        job.train(first)
    job.check_table()
