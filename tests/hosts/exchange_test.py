"""What a core sends to the owners of rows is what NumPy splits id by id."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import exchanges

from estimator_tpu_embedding.core.exchange import Exchange
from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.hosts.exchange import split
from estimator_tpu_embedding.native import library

pytestmark = [pytest.mark.soak, pytest.mark.no_rerun,
              pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())]


@pytest.fixture(params=range(8))
def world(request):
    generator = np.random.default_rng(request.param)
    exchange = exchanges.random_exchange(generator)
    with tf.Graph().as_default(), tf.Session() as session:
        yield generator, exchange, session


def test_a_split_is_that_of_numpy(world):
    generator, exchange, session = world
    for _ in range(3):
        batch = exchanges.random_batch(generator, exchange)
        tensors = exchanges.as_tensors(exchange, batch)
        found = session.run(split(exchange, tensors))
        wanted, links, scales, _ = exchanges.naive_split(exchange, batch)
        assert [one.tolist() for one in found.messages] == wanted
        assert [one.tolist() for one in found.links] == links
        np.testing.assert_allclose(found.scales, scales, rtol=1e-6)


def test_random_batches_group_features_of_one_step_in_both_ways():
    generator, steps = np.random.default_rng(0), []
    for _ in range(20):
        exchange = exchanges.random_exchange(generator)
        steps.append(exchanges.naive_split(
            exchange, exchanges.random_batch(generator, exchange))[-1])
    assert steps.count({'row', 'sample'}) > 5


ONES = {'one row in all samples': (range(4), [1] * 4, [1, 2, 3, 4]),
        'a row twice in a sample': ([0, 0, 1, 1], [1, 1, 1, 3], [1, 2, 4, 8]),
        'no ids': ([], [], []),
        'as many rows as samples': ([0, 0, 1, 1], [1, 3, 1, 3], [1, 2, 4, 8])}


@pytest.mark.parametrize('combiner', ['sum', 'mean', 'sqrtn'])
def test_weights_and_duplicates_are_grouped_in_both_ways(combiner):
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
        found = session.run(split(exchange, exchanges.as_tensors(exchange, batch)))
        assert [one.tolist() for one in found.messages] == wanted
        assert [one.tolist() for one in found.links] == links
