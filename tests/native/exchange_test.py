"""The native exchange between cores and owners is what `ops/exchange.py` says, bit for bit."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import exchanges

from estimator_tpu_embedding.hosts import native_exchange
from estimator_tpu_embedding.native import library
from estimator_tpu_embedding.ops import exchange as stock_exchange

pytestmark = pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())


@pytest.fixture(params=range(12))
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
        messages, positions, scales = exchanges.naive_split(exchange, batch)
        for found in (native, stock):
            assert [one.tolist() for one in found.messages] == messages
            assert [one.tolist() for one in found.positions] == positions
            np.testing.assert_allclose(found.scales, scales, rtol=1e-6)
        np.testing.assert_array_equal(native.scales, stock.scales)


def test_merged_sums_and_spread_gradients_are_those_of_stock_operations(world):
    generator, exchange, session = world
    batch = exchanges.as_tensors(exchange, exchanges.random_batch(generator, exchange))
    split = session.run(stock_exchange.split(exchange, batch))
    widths = np.repeat([exchange.plan.table(feature.table).dimension
                        for feature in exchange.features], exchange.samples)
    sums = [random_rows(generator, widths[positions].sum()) for positions in split.positions]
    native, stock = both(session, lambda form: form.merge(
        exchange, sums, split.positions, split.scales))
    for name, activations in stock.items():
        np.testing.assert_array_equal(native[name], activations)
    gradients = {name: random_rows(generator, *one.shape) for name, one in stock.items()}
    native, stock = both(session, lambda form: form.spread(
        exchange, gradients, split.positions, split.scales))
    for found, wanted in zip(native, stock):
        np.testing.assert_array_equal(found, wanted)
