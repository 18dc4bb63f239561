"""Every wrong order of enqueue, dequeue and apply_gradients is an error, and the next step works.

A program is a string. `+` enqueues with training=True, `-` with False, `=` with a name, which all
calls of the program then have. `d` dequeues, `g` applies gradients, `!` fails on request. Tables
are compared with a mirror in NumPy, which shows a batch of another step.
"""

import contextlib
import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas

from estimator_tpu_embedding.errors import CallError
from estimator_tpu_embedding.midlevel.batch_queues import CAPACITY

api = tf.tpu.experimental.embedding
ROWS, BATCH = 64, 2
FAILS = tf.errors.InvalidArgumentError


class Job:
    """One table with SGD(1) that gets gradients of ones, and what it must be."""

    def __init__(self, strategy, *, inside=False, kernels='native'):
        self.strategy = replicas.make(strategy)
        self.number = self.strategy.num_replicas_in_sync
        self.table = np.arange(ROWS * 2, dtype=np.float32).reshape(ROWS, 2)
        config = api.TableConfig(ROWS, 2, lambda *_, **__: tf.constant(self.table), name='t')
        self.embedding = replicas.embedding_under(
            self.strategy, {'a': api.FeatureConfig(config)}, api.SGD(1.), kernels=kernels)
        self._inside = inside
        self._random = np.random.default_rng(5)

    @functools.cache
    def program(self, text):
        @tf.function(autograph=False)
        def program(ids, fails):
            name = 'linked' if '=' in text else None

            def replica(ids, fails):
                activations, after = tf.zeros([]), []
                for step in text:
                    if self._inside:
                        self._enqueue(step, ids)
                    if step == '!':
                        with tf.control_dependencies([activations]):
                            after = [tf.debugging.Assert(~fails, ['of the model'])]
                    with tf.control_dependencies(after):
                        if step == 'd':
                            activations = self.embedding.dequeue(name)['a']
                        if step == 'g':
                            self.embedding.apply_gradients({'a': tf.ones([BATCH, 2])}, name)
                return activations
            for step in text if not self._inside else ():
                self._enqueue(step, ids)
            return self.strategy.run(replica, (ids, fails))
        return program

    def _enqueue(self, step, ids):
        if step in '+-=':
            self.embedding.enqueue({'a': ids}, training=step == '+',
                                   name='linked' if step == '=' else None)

    def run(self, text, ids=None, fails=()):
        """The activations of all replicas; `fails` has the replicas in which `!` does."""
        ids = self.ids() if ids is None else ids
        return np.concatenate([np.atleast_1d(one) for one in (
            self.strategy.experimental_local_results(self.program(text)(
                replicas.split(self.strategy, ids), self._by_replica(fails))))])

    def ids(self):
        return self._random.integers(ROWS, size=self.number * BATCH)

    def check(self, text='+dg'):
        """A correct step: of this batch, updated by it alone."""
        ids = self.ids()
        np.testing.assert_array_equal(self.run(text, ids), self.table[ids])
        if 'g' in text:
            np.subtract.at(self.table, ids, np.float32(1))
        found = replicas.values_of(self.embedding)['t']['parameters']
        np.testing.assert_array_equal(found, self.table)

    def refuses(self, code, text, **kwargs):
        with pytest.raises(FAILS, match=code):
            self.run(text, **kwargs)

    def _by_replica(self, fails):
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(context.replica_id_in_sync_group in fails))


@functools.cache
def job(strategy, inside=False, kernels='native'):
    return Job(strategy, inside=inside, kernels=kernels)


WHERE = [('none', False), ('tpu 2', True)]


@pytest.mark.parametrize('strategy, inside', WHERE)
def test_a_wrong_pairing_is_an_error_and_the_next_correct_step_is_correct(strategy, inside):
    here = job(strategy, inside)
    here.check()
    for code, text in [('E556', '-dg'), ('E556', '+g'), ('E554', 'd')]:
        here.refuses(code, text)
        here.check()
    here.run('+d')  # Nobody knows yet that no gradients will come.
    here.refuses('E555', '+dg')
    if inside and here.number > 1:  # Another replica, that had not come as far, may say so too.
        with contextlib.suppress(FAILS):
            here.check()
    here.check('-d')
    here.check()


@pytest.mark.parametrize('strategy, inside', WHERE)
def test_after_a_failure_of_the_model_the_next_step_is_correct(strategy, inside):
    here = job(strategy, inside)
    for text in ('+!dg', '+d!g', '-!d'):
        for failing in range(here.number):
            here.refuses('of the model', text, fails=[failing])
            here.check('-d' if failing else '+dg')
        here.check()


def test_batches_may_wait_in_any_number_up_to_the_most():
    here = job('tpu 2')
    batches = [here.ids() for _ in range(5)]
    for ids in batches[:2]:
        here.run('-', ids)
    for ahead, ids in zip(batches[2:], batches):  # Two steps ahead, and the same step in all.
        np.testing.assert_array_equal(here.run('-d', ahead), here.table[ids])
    for ids in batches[3:]:
        np.testing.assert_array_equal(here.run('d'), here.table[ids])
    here.run('--')
    here.run('d-')
    here.run('dd')
    here.check()
    for _ in range(CAPACITY):
        here.run('-')
    here.refuses('E557', '-')
    here.check()


def test_a_batch_with_a_name_may_get_gradients_or_not():
    here = job('none')
    for text in ('=d', '=dg', '=d', '=dg', '-d', '=d'):
        here.check(text)
    Job('none').refuses('E556', '=dgg')


def test_calls_of_a_name_are_paired_in_any_order():
    here = job('none')

    @tf.function
    def step(one, two):
        here.embedding.enqueue({'a': one}, name='1')
        here.embedding.enqueue({'a': two}, name='2')
        found = [here.embedding.dequeue(name)['a'] for name in '21']
        here.embedding.apply_gradients({'a': tf.ones([BATCH, 2])}, name='1')
        here.embedding.apply_gradients({'a': 2 * tf.ones([BATCH, 2])}, name='2')
        return found

    for _ in range(2):
        one, two = here.ids(), here.ids()
        np.testing.assert_array_equal(step(one, two), [here.table[two], here.table[one]])
        np.subtract.at(here.table, one, np.float32(1))
        np.subtract.at(here.table, two, np.float32(2))
        here.check()
    with pytest.raises(FAILS, match='E554.*by the same name'):
        tf.function(lambda: here.embedding.dequeue('3'))()


def test_two_batches_that_need_gradients_are_not_looked_up_at_once():
    here = job('none')
    with pytest.raises(CallError, match='E555.*give the calls of each batch a name'):
        here.run('++ddg')
    here.check()


def test_replicas_at_different_batches_are_an_error_and_meet_again():
    here = job('tpu 2')
    tf.function(lambda: here.embedding.enqueue({'a': tf.constant([1, 2])}, device='/TPU:1'))()
    here.refuses('E548.*got 0, 1', '+dg')
    here.check()


COUNTED = pytest.mark.parametrize('strategy', ['tpu 2', 'tpu 8', 'mirrored 2'])


def joined(here, found):
    """The results of all replicas as of one global batch."""
    return np.concatenate(here.strategy.experimental_local_results(found))


@pytest.mark.soak
@COUNTED
def test_replicas_may_count_names_and_the_kth_new_one_of_each_is_one_call(strategy):
    """Two look-ups before the first gradients do not mix."""
    here, names = Job(strategy), []

    def next_name():
        names.append(str(len(names) + 1))
        return names[-1]

    def nested(first, second):
        outer, inner = next_name(), next_name()
        here.embedding.enqueue({'a': first}, name=outer)
        one = here.embedding.dequeue(name=outer)['a']
        here.embedding.enqueue({'a': second}, name=inner)
        two = here.embedding.dequeue(name=inner)['a']
        here.embedding.apply_gradients({'a': 2 * tf.ones_like(two)}, name=inner)
        here.embedding.apply_gradients({'a': tf.ones_like(one)}, name=outer)
        return one, two

    step = tf.function(lambda *ids: here.strategy.run(nested, ids), autograph=False)
    for _ in range(3):
        first, second = here.ids(), here.ids()
        one, two = step(*(replicas.split(here.strategy, ids) for ids in (first, second)))
        np.testing.assert_array_equal(joined(here, one), here.table[first])
        np.testing.assert_array_equal(joined(here, two), here.table[second])
        np.subtract.at(here.table, np.concatenate([first, second, second]), np.float32(1))
    assert len(names) == 2 * here.number
    here.check()


@pytest.mark.soak
@COUNTED
def test_names_outside_of_replicas_are_the_same_in_all_whatever_their_order(strategy):
    """A program hands over replica by replica, and not in the same order to each."""
    here = Job(strategy)

    def step():
        found = []
        for name in ('second', 'first'):
            found.append(here.embedding.dequeue(name=name)['a'])
            here.embedding.apply_gradients({'a': tf.ones_like(found[-1])}, name=name)
        return found

    @tf.function(autograph=False)
    def train(**ids):
        for replica in range(here.number):
            for name in sorted(ids, reverse=replica % 2):
                own = ids[name][replica * BATCH:(replica + 1) * BATCH]
                here.embedding.enqueue({'a': own}, name=name, device=f'/TPU:{replica}')
        return here.strategy.run(step)

    for _ in range(2):
        first, second = here.ids(), here.ids()
        two, one = train(first=tf.constant(first), second=tf.constant(second))
        np.testing.assert_array_equal(joined(here, two), here.table[second])
        np.subtract.at(here.table, second, np.float32(1))
        np.testing.assert_array_equal(joined(here, one), here.table[first])
        np.subtract.at(here.table, first, np.float32(1))
    here.check()
