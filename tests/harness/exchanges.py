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
    """Returns messages, links and scales, made id by id, and which ways there were."""
    messages, links, ways = [], [], set()
    for host in exchange.owners:
        message, counts, linked = [[] for _ in range(5)], [], [[] for _ in range(3)]
        here = numbers_at(exchange, host)
        for number, feature in enumerate(exchange.features):
            sent, own, is_by_row = naive_groups(exchange, batch, host, number)
            first, m = sum(counts), len({group for _, group, _ in sent})
            counts.append(m)
            if sent:
                ways.add('row' if is_by_row else 'sample')
            linked[0] += [first + group for group, _, _ in own]
            linked[1] += [exchange.bounds[number] + sample for _, sample, _ in own]
            linked[2] += [bits_of(weight) for _, _, weight in own]
            if number in here:
                rows, groups, weights = ([one[part] for one in sent] for part in range(3))
                weights = map(bits_of, weights) if feature.weight_feature else ()
                for part, values in zip(message, ([len(sent)], [m], rows, groups, weights)):
                    part += values
        messages.append(sum(message, []))
        links.append(counts + sum(linked[:3 if exchange.is_weighted else 2], []))
    return messages, links, naive_scales(exchange, batch), ways


def numbers_at(exchange, host):
    """The numbers in exchange order of the features that an owner has rows for."""
    names = {feature.name for feature in exchange.owners[host].features}
    return [number for number, feature in enumerate(exchange.features) if feature.name in names]


def is_scaled(exchange, number):
    """Whether the core scales the sums of a feature, because only the core knows all ids."""
    return exchange.plan.table(exchange.features[number].table).combiner in ('mean', 'sqrtn')


def bits_of(weight):
    """The int32 that has the bits of a float32."""
    return int(np.float32(weight).view(np.int32))


def naive_groups(exchange, batch, host, number):
    """Returns what a feature sends: `(row, group, weight)`, its links, and whether by row.

    A link is `(group, sample, weight)`.
    """
    feature = exchange.features[number]
    held = exchange.plan.partition(feature.table).ids_on(host).tolist()
    of, ids, own = batch[feature.name]
    here = [at for at, one in enumerate(ids) if one in held]
    samples = [int(of[at]) for at in here]
    rows = [held.index(ids[at]) for at in here]
    weights = [1 if own is None else own[at] for at in here]
    distinct, found = list(dict.fromkeys(rows)), list(dict.fromkeys(samples))
    if len(distinct) < len(found):
        return ([(row, group, 1) for group, row in enumerate(distinct)],
                [(distinct.index(row), *rest) for row, *rest in zip(rows, samples, weights)], True)
    return ([(row, found.index(sample), weight)
             for row, sample, weight in zip(rows, samples, weights)],
            [(group, sample, 1) for group, sample in enumerate(found)], False)


def naive_scales(exchange, batch):
    """Of the features whose sums are scaled, sample by sample."""
    scales = []
    for number, feature in enumerate(exchange.features):
        samples, ids, weights = batch[feature.name]
        weights = np.ones(len(ids)) if weights is None else weights
        for sample in range(exchange.samples[number]) if is_scaled(exchange, number) else ():
            own = weights[samples == sample]
            is_mean = exchange.plan.table(feature.table).combiner == 'mean'
            norm = own.sum() if is_mean else np.sqrt((own**2).sum())
            scales.append(1 / norm if norm else 0)
    return scales
