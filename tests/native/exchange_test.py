"""The native exchange between cores and owners is what `ops/exchange.py` says, bit for bit."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import exchanges

from estimator_tpu_embedding.core.exchange import Exchange
from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.hosts import native_exchange
from estimator_tpu_embedding.native import layout, library
from estimator_tpu_embedding.ops import exchange as stock_exchange
from estimator_tpu_embedding.ops.ids import IdBatch

pytestmark = pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())


@pytest.fixture(params=range(8))
def world(request):
    generator = np.random.default_rng(request.param)
    exchange = exchanges.random_exchange(generator)
    with tf.Graph().as_default(), tf.Session() as session:
        yield generator, exchange, session


def random_rows(generator, *shape):
    return generator.normal(size=shape).astype(np.float32)


def both(session, call):
    """What the native and the stock form give."""
    return session.run([call(native_exchange), call(stock_exchange)])


def test_a_split_is_that_of_numpy_and_of_stock_operations(world):
    generator, exchange, session = world
    for _ in range(3):
        batch = exchanges.random_batch(generator, exchange)
        tensors = exchanges.as_tensors(exchange, batch)
        native, stock = both(session, lambda form: form.split(exchange, tensors))
        messages, links, scales, _ = exchanges.naive_split(exchange, batch)
        for found in (native, stock):
            assert [one.tolist() for one in found.messages] == messages
            assert [one.tolist() for one in found.links] == links
            np.testing.assert_allclose(found.scales, scales, rtol=1e-6)
        np.testing.assert_array_equal(native.scales, stock.scales)


def test_random_batches_group_features_of_one_step_in_both_ways():
    generator, steps = np.random.default_rng(0), []
    for _ in range(20):
        exchange = exchanges.random_exchange(generator)
        steps.append(exchanges.naive_split(
            exchange, exchanges.random_batch(generator, exchange))[-1])
    assert steps.count({'row', 'sample'}) > 5


def sums_for(generator, exchange, links):
    """Random sums of each owner."""
    widths = [exchange.plan.table(feature.table).dimension for feature in exchange.features]
    return [random_rows(generator, int(np.dot(one[:len(widths)], widths))) for one in links]


def check_values(generator, exchange, session, batch):
    """Compares what both forms make of random sums and gradients, bit for bit."""
    split = session.run(stock_exchange.split(exchange, exchanges.as_tensors(exchange, batch)))
    sums = sums_for(generator, exchange, split.links)
    native, stock = both(session, lambda form: form.merge(
        exchange, sums, split.links, split.scales))
    for name, activations in stock.items():
        np.testing.assert_array_equal(native[name], activations)
    gradients = {name: random_rows(generator, *one.shape) for name, one in stock.items()}
    native, stock = both(session, lambda form: form.spread(
        exchange, gradients, split.links, split.scales))
    for found, wanted, own in zip(native, stock, sums):
        np.testing.assert_array_equal(found, wanted)
        assert found.shape == own.shape


def test_merged_sums_and_spread_gradients_are_those_of_stock_operations(world):
    generator, exchange, session = world
    check_values(generator, exchange, session, exchanges.random_batch(generator, exchange))


class Owners:
    """The engines of a small plan on two hosts, and what one core exchanges with them."""

    def __init__(self):
        plan = resolve(
            [TableSpec(name='item', vocabulary_size=5, dimension=3, combiner='mean'),
             TableSpec(name='user', vocabulary_size=1, dimension=2, combiner='sum')],
            [FeatureSpec(name='liked', table='item', weight_feature='w'),
             FeatureSpec(name='self', table='user')],
            Topology(num_hosts=2), batch_size=2 * exchanges.SAMPLES,
            optimizer=Adagrad(learning_rate=.1))
        self.exchange = Exchange.of(plan)
        self.library = library.load()
        self.engines = [self.library.ete_open(**layout.attributes(own, 1))
                        for own in self.exchange.owners.values()]
        samples = tf.constant([0, 0, 2])
        batch = {'liked': IdBatch(samples, tf.constant([4, 0, 1], tf.int64), 4,
                                  tf.constant([1., 3., 2.])),
                 'self': IdBatch(samples, tf.constant([0, 0, 0], tf.int64), 4, None)}
        self.split = native_exchange.split(self.exchange, batch)

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

    def update(self, host, grouped, lengths, parts, *, counted=(), rates=None):
        return self.library.ete_update_parts(
            engine=self.engines[host], grouped=[grouped], lengths=[lengths], parts=[parts],
            rates=rates or tf.fill([2 - host], 1.), handles=[],
            counted=tf.constant(counted, tf.int32, [len(counted)])).numpy().tolist()

    def count(self, host, grouped, lengths, parts):
        return self.library.ete_count_parts(
            engine=self.engines[host], grouped=[grouped], lengths=[lengths],
            parts=[parts]).numpy().tolist()


@pytest.fixture
def owners():
    with tf.init_scope():
        made = Owners()
        yield made
        made.close()


def test_a_message_has_counts_rows_samples_and_weights_of_what_an_owner_holds(owners):
    """By `div` ids 0 to 2 of `item` are on host 0, and the only id of `user`."""
    bits = np.array([3, 2], np.float32).view(np.int32).tolist()
    assert owners.split.messages[0].numpy().tolist() == [
        3, 2, 2, 2, *[0, 0, 0], *[0, 1], *[0, 0, 1], *[0, 1], *bits]
    assert owners.split.positions[0].numpy().tolist() == [0, 2, 4, 6]  # `self`, which is narrower.
    assert owners.split.messages[1].numpy().tolist() == [1, 1, 1, 0, np.float32(1).view(np.int32)]
    assert owners.split.positions[1].numpy().tolist() == [4]
    assert owners.split.scales.numpy().tolist() == [.25, 0, .5, 0]


def test_what_is_not_finite_is_counted_and_others_counts_decide_whether_an_owner_writes(owners):
    received = owners.received(1)
    finite, nan = np.float32([1, 2, 3]), np.float32([1, np.nan, np.inf])
    assert owners.count(1, *received, finite) == [0]
    assert owners.count(1, *received, nan) == [2]
    assert owners.update(1, *received, nan) == [2]
    assert owners.update(1, *received, finite, counted=[0, 7]) == [0]
    assert owners.look_up(1, *received).tolist() == [0, 0, 0]
    assert owners.update(1, *received, finite, counted=[0, 0]) == [0]
    np.testing.assert_allclose(owners.look_up(1, *received), [-1, -1, -1], rtol=1e-6)
    assert owners.update(1, *received, finite) == [0]
    assert owners.look_up(1, *received)[0] < -1


def test_without_numbers_that_fit_nothing_is_done(owners):
    grouped, lengths = owners.received(0)
    part = np.zeros(2 * 2 + 2 * 3, np.float32)
    for wrong in ([2], [2, 2, 2], [2, 5], [-1, 2], [[2, 2]], [2, 1], [0, 0]):
        for refused in (lambda: owners.look_up(0, grouped, wrong),
                        lambda: owners.update(0, grouped, wrong, part),
                        lambda: owners.count(0, grouped, wrong, part)):
            with pytest.raises(tf.errors.InvalidArgumentError):
                refused()
    for wrong in (part[1:], part.reshape(2, 5)):
        with pytest.raises(tf.errors.InvalidArgumentError, match='parts'):
            owners.count(0, grouped, lengths, wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match='one per table'):
        owners.update(0, grouped, lengths, part, rates=[1.])


def test_ids_that_a_table_does_not_have_are_refused_with_the_name_of_the_feature(owners):
    for wrong in (5, -1, 2**40):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f'"liked".*got {wrong}'):
            native_exchange.split(owners.exchange, {
                'liked': IdBatch(tf.constant([1]), tf.constant([wrong], tf.int64), 4,
                                 tf.constant([1.])),
                'self': IdBatch(tf.constant([], tf.int32), tf.constant([], tf.int64), 4, None)})


def test_parts_that_do_not_belong_to_positions_are_refused(owners):
    positions, scales = list(owners.split.positions), owners.split.scales
    sums = [np.zeros(10, np.float32), np.zeros(3, np.float32)]
    merged = native_exchange.merge(owners.exchange, sums, positions, scales)
    assert {name: one.shape for name, one in merged.items()} == {'self': [4, 2], 'liked': [4, 3]}
    for wrong_sums, wrong_positions, wrong_scales in (
            ([sums[0][1:], sums[1]], positions, scales), (sums, positions[::-1], scales),
            (sums, [positions[0], [8]], scales), (sums, [positions[0], [3]], scales),
            (sums, positions, scales[1:])):
        with pytest.raises(tf.errors.InvalidArgumentError, match='owner|sums|scales'):
            native_exchange.merge(owners.exchange, wrong_sums, wrong_positions, wrong_scales)
    gradients = {'self': tf.zeros([4, 2]), 'liked': tf.zeros([4, 4])}
    with pytest.raises(tf.errors.InvalidArgumentError, match='"liked"'):
        native_exchange.spread(owners.exchange, gradients, positions, scales)


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
    assert owners.look_up(0, *owners.received(0)).shape == (10,)


def test_grouped_ids_of_another_host_are_refused(owners):
    """The tables of `mod` hosts may have the same number of rows, but not the same ids."""
    plan = dataclasses.replace(owners.exchange.plan, strategy='mod', tables=tuple(
        dataclasses.replace(table, vocabulary_size=4) for table in owners.exchange.plan.tables))
    first, second = [
        owners.library.ete_open(**layout.attributes(own, 1))
        for own in Exchange.of(plan).owners.values()]
    empty = np.zeros(4, np.int32)
    grouped, lengths = owners.library.ete_group_message(engine=first, message=empty)
    with pytest.raises(tf.errors.InvalidArgumentError, match='other tables or features'):
        owners.library.ete_lookup_parts(
            engine=second, grouped=grouped, lengths=lengths, handles=[])
    for engine in (first, second):
        owners.library.ete_close(engine=engine)
