"""The specification in executable form: float64, one array per table, no partitioning.

It knows no hosts, no cores and no TensorFlow. A batch is a list with the ids of each sample of
the global batch; `update` sums what the whole batch says about a row and applies the optimizer
once, as `spec/tf1_embedding_api.md` sections 13.1 to 13.4 have it.
"""

import numpy as np

from estimator_tpu_embedding.core import optimizers


class ReferenceTable:
    """One table with its optimizer state.

    Attributes:
      rows: float64 `[V, D]`.
      slots: by checkpoint suffix, float64 `[V, D]` each.
    """

    def __init__(self, rows, optimizer, combiner, rate=None):
        self.rows = np.array(rows, np.float64)
        self.optimizer = optimizer
        self.combiner = combiner
        self.rate = optimizer.learning_rate if rate is None else rate
        self.slots = {slot.suffix: np.full_like(self.rows, slot.initial_value)
                      for slot in optimizer.slots}

    def lookup(self, batch):
        """Activations `[len(batch), D]` of the ids of each sample."""
        result = np.zeros((len(batch), self.rows.shape[1]))
        for sample, ids in enumerate(batch):
            for share, row in zip(self._shares(ids), ids):
                result[sample] += share * self.rows[row]
        return result

    def update(self, batches_and_gradients):
        """One step from (batch, gradient `[len(batch), D]`) of each feature of the table."""
        summed = {}
        for batch, gradient in batches_and_gradients:
            for sample, ids in enumerate(batch):
                for share, row in zip(self._shares(ids), ids):
                    summed[row] = summed.get(row, 0.0) + share * np.asarray(
                        gradient[sample], np.float64)
        for row, gradient in summed.items():
            self._update_row(row, gradient)

    def _shares(self, ids):
        count = max(len(ids), 1)
        norm = {'sum': 1.0, None: 1.0, 'mean': count, 'sqrtn': np.sqrt(count)}[self.combiner]
        return [1.0 / norm] * len(ids)

    def _update_row(self, row, gradient):
        optimizer, weights = self.optimizer, self.rows[row]
        gradient = clip(gradient, optimizer.clip_gradients)
        if optimizer.decay:
            weights = weights * (1 - optimizer.decay * (
                self.rate if optimizer.decay_times_rate else 1.0))
        state = {suffix: slot[row] for suffix, slot in self.slots.items()}
        weights, state = RULES[type(optimizer)](optimizer, weights, state, gradient, self.rate)
        self.rows[row] = clip(weights, optimizer.clip_weights)
        for suffix, value in state.items():
            self.slots[suffix][row] = value


def clip(values, limits):
    """Values kept within limits, either of which may be absent."""
    lower = -np.inf if limits.lower is None else limits.lower
    upper = np.inf if limits.upper is None else limits.upper
    return np.clip(values, lower, upper)


def sgd(optimizer, weights, state, gradient, rate):
    return weights - rate * gradient, state


def adagrad(optimizer, weights, state, gradient, rate):
    accumulator = state['Adagrad'] + gradient**2
    return weights - rate * gradient / np.sqrt(accumulator), {'Adagrad': accumulator}


RULES = {optimizers.StochasticGradientDescent: sgd, optimizers.Adagrad: adagrad}


def assert_close(actual, expected, tolerance=2e-6):
    """|actual - expected| <= tolerance * (|expected| + the largest |expected|)."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    allowed = tolerance * (np.abs(expected) + np.abs(expected).max(initial=0.0))
    worst = np.max(np.abs(actual - expected) - allowed, initial=-1.0)
    assert worst <= 0, f'off by up to {np.abs(actual - expected).max()}'
