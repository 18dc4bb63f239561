"""A job for a TFRS layer with every kind of ids: what it declares, what its steps are fed."""

import functools

import numpy as np
import tensorflow as tf
from harness import tfrs
from harness.numpy_reference import ReferenceTable, assert_close

api = tf.tpu.experimental.embedding
SAMPLES, WIDTH, LENGTH = 16, 3, 3
COMBINERS = {'sums': 'sum', 'means': 'mean', 'roots': 'sqrtn', 'sequences': 'mean'}
TABLE_OF = {'dense': 'sums', 'sparse': 'sums', 'weighted_sparse': 'means', 'ragged': 'means',
            'weighted_ragged': 'roots', 'sequence': 'sequences', 'dense_again': 'roots'}
KINDS = {name: next(kind for kind in ('sparse', 'ragged', 'dense') if kind in f'{name} ragged')
         for name in TABLE_OF} | {'dense_again': 'dense'}
WEIGHTED = [name for name in TABLE_OF if name.startswith('weighted')]
ROWS = {'sums': 9, 'means': 7, 'roots': 5, 'sequences': 6}
TOLERANCE = 4e-6


def initial_rows(table):
    """The rows with which a table begins."""
    return np.random.default_rng(ROWS[table]).normal(size=(ROWS[table], WIDTH)).astype(np.float32)


def feature_config(optimizers=None):
    """FeatureConfigs by name; `optimizers` has those of single tables."""
    tables = {name: api.TableConfig(
        ROWS[name], WIDTH, lambda shape, dtype, name=name: tf.constant(initial_rows(name)),
        (optimizers or {}).get(name), combiner, name) for name, combiner in COMBINERS.items()}
    return {feature: api.FeatureConfig(
        tables[table], max_sequence_length=LENGTH if feature == 'sequence' else 0)
        for feature, table in TABLE_OF.items()}


@functools.cache
def step_of(number):
    """Ids, weights and coefficients of a global batch by feature."""
    generator = np.random.default_rng(number)
    ids, weights, coefficients = {}, {}, {}
    for name, table in TABLE_OF.items():
        if KINDS[name] == 'dense':
            ids[name] = generator.integers(ROWS[table], size=SAMPLES)
        else:
            ids[name] = [generator.integers(ROWS[table], size=generator.integers(
                0, tfrs.LONGEST)).tolist() for _ in range(SAMPLES)]
        if name in WEIGHTED:
            weights[name] = [generator.uniform(.5, 2, len(row)).tolist() for row in ids[name]]
        # Of one sign in a column: what nearly cancels in a sum has no digits left to compare.
        places = [LENGTH] if name == 'sequence' else []
        coefficients[name] = np.float32(generator.choice([-1, 1], WIDTH) * generator.uniform(
            .1, 1, [SAMPLES, *places, WIDTH]))
    return ids, weights, coefficients


def iterator(made, steps):
    """An iterator of distributed (ids, coefficients, weights)."""
    batches, kinds = [], {}
    for number in steps:
        parts = zip(('ids', 'weights', 'coefficients'), step_of(number))
        batches.append({f'{part}/{name}': value for part, own in parts
                        for name, value in own.items()})
    for key in batches[0]:
        part, name = key.split('/')
        kinds[key] = 'dense' if part == 'coefficients' else KINDS[name]
    return tfrs.iterator(made, batches, kinds)


def arguments(element, *, weighted=True):
    """(ids, coefficients, weights) of an element of `iterator`."""
    parts = {part: {key.split('/')[1]: value for key, value in element.items()
                    if key.startswith(part)} for part in ('ids', 'coefficients', 'weights')}
    weights = {name: parts['weights'].get(name) for name in TABLE_OF} if weighted else None
    return parts['ids'], parts['coefficients'], weights


class Expected(tfrs.Reference):
    """What tables, slots and activations must be."""

    def __init__(self, optimizers):
        """Takes the optimizer of the core of each table, or one for all."""
        super().__init__({name: ReferenceTable(
            initial_rows(name), optimizers[name] if isinstance(optimizers, dict) else optimizers,
            combiner) for name, combiner in COMBINERS.items()}, TABLE_OF, {'sequence': LENGTH})

    def step(self, number, *, rate=None, training=True, weighted=True):
        """The activations of a step, by feature."""
        ids, weights, coefficients = step_of(number)
        found = self.lookup(ids, weights if weighted else None)
        if training:
            for table in self.tables.values():
                table.rate = table.rate if rate is None else rate
            self.update(ids, coefficients, weights if weighted else None)
        return found

    def check(self, layer):
        """Compares tables and slots of a layer."""
        values = tfrs.values_of(layer)
        assert set(values) == set(self.tables)
        for name, table in self.tables.items():
            found, wanted = list(values[name].values()), [table.rows, *table.slots.values()]
            for one, other in zip(found, wanted, strict=True):
                assert_close(one, other, TOLERANCE)


def assert_activations(found, wanted):
    """Compares activations by feature."""
    assert set(found) == set(wanted)
    for name in wanted:
        assert_close(found[name].numpy(), wanted[name], TOLERANCE)
