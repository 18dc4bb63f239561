"""Random plans and ids for tests of the exchange between cores and owners, and a naive exchange."""

import numpy as np
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core.exchange import Exchange
from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.ops.ids import IdBatch

SAMPLES = 4


def random_exchange(generator, **options):
    """Of some tables of few or many rows, on 1 to 5 hosts."""
    hosts, tables, features = generator.integers(1, 6), [], []
    for number in range(generator.integers(1, 4)):
        combiner = generator.choice(['sum', 'mean', 'sqrtn', 'none'])
        tables.append(TableSpec(
            name=f't{number}', vocabulary_size=int(generator.choice([1, 2, 7, 100])),
            dimension=int(generator.choice([1, 3, 8, 20])),
            combiner=None if combiner == 'none' else str(combiner)))
        for _ in range(generator.integers(1, 4)):
            features.append(FeatureSpec(
                name=f'f{len(features)}', table=f't{number}',
                weight_feature='w' if generator.integers(3) == 0 and combiner != 'none' else None,
                max_sequence_length=int(generator.integers(1, 4)) if combiner == 'none' else 0))
    return Exchange.of(resolve(
        tables, features, Topology(num_hosts=int(hosts)), batch_size=SAMPLES * int(hosts),
        strategy=str(generator.choice(['div', 'mod'])),
        **{'optimizer': Adagrad(learning_rate=.1), **options}))


def random_batch(generator, exchange):
    """Arrays `(samples, ids, weights)` by feature; some features have no ids."""
    batch = {}
    for feature, count in zip(exchange.features, exchange.samples):
        most = generator.choice([0, 1, 4])
        samples = np.repeat(np.arange(count, dtype=np.int32),
                            generator.integers(0, most + 1, count))
        rows = exchange.plan.table(feature.table).vocabulary_size
        batch[feature.name] = (
            samples, generator.integers(0, rows, len(samples)),
            generator.choice([0, .5, 1, 3], len(samples)).astype(np.float32)
            if feature.weight_feature else None)
    return batch


def as_tensors(exchange, batch):
    """The same as an `IdBatch` of each feature."""
    return {feature.name: IdBatch(
        tf.constant(samples), tf.constant(ids, tf.int64), count,
        None if weights is None else tf.constant(weights))
        for feature, count in zip(exchange.features, exchange.samples)
        for samples, ids, weights in [batch[feature.name]]}


def naive_split(exchange, batch):
    """Returns messages, positions and scales, made id by id."""
    plan, messages, positions = exchange.plan, [], []
    for host in exchange.owners:
        counts, lengths, rows, samples, weights, places = [], [], [], [], [], []
        for number in exchange.numbers_at(host):
            feature = exchange.features[number]
            of, ids, own = batch[feature.name]
            held = plan.partition(feature.table).ids_on(host).tolist()
            here = [at for at, one in enumerate(ids) if one in held]
            found = sorted({int(of[at]) for at in here})
            counts.append(len(here))
            lengths.append(len(found))
            rows += [held.index(ids[at]) for at in here]
            samples += [found.index(of[at]) for at in here]
            weights += [] if own is None else own[here].view(np.int32).tolist()
            places += [exchange.bounds[number] + one for one in found]
        messages.append(counts + lengths + rows + samples + weights)
        positions.append(places)
    return messages, positions, naive_scales(exchange, batch)


def naive_scales(exchange, batch):
    """Of the features whose sums are scaled, sample by sample."""
    scales = []
    for number, feature in enumerate(exchange.features):
        samples, ids, weights = batch[feature.name]
        weights = np.ones(len(ids)) if weights is None else weights
        for sample in range(exchange.samples[number]) if exchange.is_scaled(number) else ():
            own = weights[samples == sample]
            is_mean = exchange.plan.table(feature.table).combiner == 'mean'
            norm = own.sum() if is_mean else np.sqrt((own**2).sum())
            scales.append(1 / norm if norm else 0)
    return scales
