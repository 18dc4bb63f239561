"""Draws global batches of ids of every kind, for tables of one shape."""

import numpy as np

from .cases import FEATURES, LENGTH, SAMPLES


def _empty():
    return {name: [[] for _ in range(SAMPLES * (LENGTH if name == 'path' else 1))]
            for name in FEATURES}


def _scattered(generator, ids, samples, times=1):
    """Each id in a sample of its own choice, so many times."""
    batch = [[] for _ in range(samples)]
    for one in ids:
        batch[generator.integers(samples)].extend([int(one)] * times)
    return batch


def unique(generator, rows):
    return {**_empty(), 'plain': _scattered(generator, generator.permutation(rows), SAMPLES)}


def duplicates(generator, rows):
    """An id is in one sample only, and there up to three times."""
    return {**_empty(), 'plain': _scattered(
        generator, generator.permutation(rows)[:rows // 2 + 1], SAMPLES,
        times=int(generator.integers(2, 4)))}


def across(generator, rows):
    """Few ids, all of them in samples of every core and in every feature."""
    hot = generator.permutation(rows)[:min(rows, 7)]
    return {name: [hot[generator.integers(len(hot), size=at % 2)].tolist()
                   for at in range(len(batch))]
            for name, batch in _empty().items()}


def empty_rows(generator, rows):
    """Most samples have no id; neither has any sample of the first core."""
    batch = _empty()
    for name in FEATURES:
        for sample in range(len(batch[name]) * 2 // 5, len(batch[name]), 4):
            batch[name][sample] = generator.integers(rows, size=2).tolist()
    return batch


def weights(generator, rows):
    return {**_empty(), 'weighted': [
        generator.integers(rows, size=generator.integers(0, 4)).tolist()
        for _ in range(SAMPLES)]}


def sequence(generator, rows):
    """Places with 0, 1 or 2 ids."""
    return {**_empty(), 'path': [
        generator.integers(rows, size=generator.integers(0, 3)).tolist()
        for _ in range(SAMPLES * LENGTH)]}


KINDS = {'unique ids': unique, 'duplicates': duplicates,
         'duplicates across cores and features': across, 'empty rows': empty_rows,
         'weights': weights, 'sequence': sequence}


def weights_of(generator, batch):
    """For each sample of `batch` the weights of its ids; some are 0."""
    return [np.maximum(generator.uniform(-.3, 2, len(ids)), 0).astype(np.float32)
            for ids in batch]
