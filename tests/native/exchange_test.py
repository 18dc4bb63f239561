"""What the operations of the exchange between cores and owners refuse."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.hosts import per_host
from estimator_tpu_embedding.native import library, plan_attributes
from estimator_tpu_embedding.ops.ids import IdBatch

SAMPLES = 4
pytestmark = [pytest.mark.no_rerun,
              pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())]


class Owners:
    """The engines of a small plan on two hosts, and what one core exchanges with them."""

    def __init__(self):
        plan = resolve(
            [TableSpec(name='item', vocabulary_size=5, dimension=3, combiner='mean'),
             TableSpec(name='user', vocabulary_size=1, dimension=2, combiner='sum')],
            [FeatureSpec(name='liked', table='item', weight_feature='w'),
             FeatureSpec(name='self', table='user')],
            Topology(num_hosts=2), batch_size=2 * SAMPLES,
            optimizer=Adagrad(learning_rate=.1))
        self.plan = plan
        self.library = library.load()
        self.engines = [self.library.ete_open(**plan_attributes.attributes(own, 1))
                        for own in plan.plans_of_owners().values()]
        samples = tf.constant([0, 0, 2])
        batch = {'liked': IdBatch(samples, tf.constant([4, 0, 1], tf.int64), 4,
                                  tf.constant([1., 3., 2.])),
                 'self': IdBatch(samples, tf.constant([0, 0, 0], tf.int64), 4, None)}
        self.split = per_host.split(plan, batch, 2)

    def close(self):
        for engine in self.engines:
            self.library.ete_close(engine=engine)

    def received(self, host):
        """What an owner makes of its message: grouped ids and lengths."""
        return self.library.ete_group_message(
            engine=self.engines[host], message=self.split.messages[host])

    def look_up(self, host, grouped, lengths):
        return self.library.ete_lookup_parts(
            engine=self.engines[host], grouped=grouped, lengths=lengths, handles=[]).numpy()


@pytest.fixture
def owners():
    with tf.init_scope():
        made = Owners()
        yield made
        made.close()


def test_ids_that_a_table_does_not_have_are_refused_with_the_name_of_the_feature(owners):
    for wrong in (5, -1, 2**40):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f'"liked".*got {wrong}'):
            per_host.split(owners.plan, {
                'liked': IdBatch(tf.constant([1]), tf.constant([wrong], tf.int64), 4,
                                 tf.constant([1.])),
                'self': IdBatch(tf.constant([], tf.int32), tf.constant([], tf.int64), 4, None)}, 2)


@pytest.mark.parametrize(('wrong', 'message'), [
    ([0], 'have 1 words'), ([0, 5], '5 groups of feature "liked" instead of up to 4'),
    ([1, 0], '1 groups of feature "self" instead of up to 0'),
    ([0, 1, 1, 4, 0], 'groups that feature "liked" does not have'),
    ([0, 1, 0, 3, 0], 'groups that feature "self" does not have'),
    ([0, 1, 0, 8, 0], 'go beyond 8'), ([0, 1, 0, -1, 0], 'do not ascend'),
    ([0, 2, 0, 1, 5, 4, 0, 0], 'do not ascend')])
def test_links_that_are_none_are_refused_with_the_owner(owners, wrong, message):
    """Owner 1 knows only `liked`, whose 4 samples have the positions 4 to 7."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=f'owner 1 .*{message}'):
        per_host.merge(owners.plan, [np.zeros(8, np.float32), np.zeros(3, np.float32)],
                       [owners.split.links[0], wrong], owners.split.scales)


def test_a_message_of_garbage_is_an_error_or_some_message(owners):
    generator = np.random.default_rng(3)
    valid, refused = owners.split.messages[0].numpy(), 0
    for number in range(200):
        words = valid.copy()
        words[generator.integers(0, len(words), 2)] = generator.choice(
            [0, 1, -1, 2, 3, 2**31 - 1, -2**31, int(generator.integers(-2**31, 2**31))], 2)
        if number % 4 == 0:
            words = np.resize(words[:generator.integers(0, len(words))],
                              generator.choice([0, 5, 2**14]))  # 2**14 words are 64 KiB.
        try:
            owners.look_up(0, *owners.library.ete_group_message(
                engine=owners.engines[0], message=words))
        except tf.errors.InvalidArgumentError:
            refused += 1
    assert 100 < refused < 200
    assert owners.look_up(0, *owners.received(0)).shape == (8,)


def test_grouped_ids_of_another_host_are_refused(owners):
    """The tables of `mod` hosts may have the same number of rows, but not the same ids."""
    plan = dataclasses.replace(owners.plan, strategy='mod', tables=tuple(
        dataclasses.replace(table, vocabulary_size=4) for table in owners.plan.tables))
    first, second = [
        owners.library.ete_open(**plan_attributes.attributes(own, 1))
        for own in plan.plans_of_owners().values()]
    empty = np.zeros(4, np.int32)
    grouped, lengths = owners.library.ete_group_message(engine=first, message=empty)
    with pytest.raises(tf.errors.InvalidArgumentError, match='other tables or features'):
        owners.library.ete_lookup_parts(
            engine=second, grouped=grouped, lengths=lengths, handles=[])
    for engine in (first, second):
        owners.library.ete_close(engine=engine)
