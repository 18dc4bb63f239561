"""The native exchange between cores and owners is what `ops/exchange.py` says, bit for bit."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import exchanges

from estimator_tpu_embedding.core.exchange import Exchange
from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.hosts import native_exchange
from estimator_tpu_embedding.native import library
from estimator_tpu_embedding.ops import exchange as stock_exchange
from estimator_tpu_embedding.ops import messages

pytestmark = [pytest.mark.soak, pytest.mark.no_rerun,
              pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())]


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
        wanted, links, scales, _ = exchanges.naive_split(exchange, batch)
        for found in (native, stock):
            assert [one.tolist() for one in found.messages] == wanted
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


ONES = {'one row in all samples': (range(4), [1] * 4, [1, 2, 3, 4]),
        'a row twice in a sample': ([0, 0, 1, 1], [1, 1, 1, 3], [1, 2, 4, 8]),
        'no ids': ([], [], []),
        'as many rows as samples': ([0, 0, 1, 1], [1, 3, 1, 3], [1, 2, 4, 8])}


@pytest.mark.parametrize('combiner', ['sum', 'mean', 'sqrtn'])
def test_weights_and_duplicates_are_grouped_alike_and_summed_in_one_order(combiner):
    """On one of two hosts, weighted and not; features without ids come between."""
    tables = [TableSpec(name='few', vocabulary_size=8, dimension=3, combiner=combiner)]
    features = [FeatureSpec(name=f'{name}, {weight}', table='few', weight_feature=weight)
                for name in ONES for weight in (None, 'w')]
    exchange = Exchange.of(resolve(tables, features, Topology(num_hosts=2), strategy='mod',
                                   batch_size=8, optimizer=Adagrad(learning_rate=.1)))
    batch = {feature.name: (
        np.array(samples, np.int32), np.array(ids, np.int64),
        np.array(weights, np.float32) if feature.weight_feature else None)
        for feature in features for samples, ids, weights in [ONES[feature.name.split(',')[0]]]}
    wanted, links, _, ways = exchanges.naive_split(exchange, batch)
    assert ways == {'row', 'sample'}
    with tf.Graph().as_default(), tf.Session() as session:
        for found in both(session, lambda form: form.split(
                exchange, exchanges.as_tensors(exchange, batch))):
            assert [one.tolist() for one in found.messages] == wanted
            assert [one.tolist() for one in found.links] == links
        check_values(np.random.default_rng(0), exchange, session, batch)


def test_ids_come_back_from_both_ways_with_their_samples_and_weights(world):
    generator, exchange, session = world
    batch = exchanges.random_batch(generator, exchange)
    split = native_exchange.split(exchange, exchanges.as_tensors(exchange, batch))
    found = {name: [] for name in batch}
    for plan, message, links in zip(exchange.owners.values(), split.messages, split.links):
        sent, _ = messages.read_message(plan, message)
        for name, one in stock_exchange.of_core(exchange, plan, sent, links).items():
            found[name].append(one)
    joined = {name: stock_exchange.joined(parts) for name, parts in found.items()}
    for name, ids in session.run({
            name: {'samples': one.samples, 'ids': one.ids,
                   **({} if one.weights is None else {'weights': one.weights})}
            for name, one in joined.items()}).items():
        samples, wanted, weights = batch[name]
        back = zip(ids['samples'], ids['ids'], wanted * 0 if weights is None else ids['weights'])
        given = zip(samples, wanted, wanted * 0 if weights is None else weights)
        assert sorted(back) == sorted(given)
