"""Computes look-ups and updates as the specification has them: float64, one array per table.

It knows no hosts, no partitioning and no TensorFlow. A batch is a list with the ids of each sample
of the global batch. `update` sums the gradients of a row over the whole batch and applies the
optimizer once. Without accumulation it sums and applies them core by core. The source is
`spec/tf1_embedding_api.md`, sections 13.1 to 13.4.
"""

import numpy as np

from estimator_tpu_embedding.core import optimizers


class ReferenceTable:
    """One table with its optimizer state.

    Attributes:
      rows: float64 `[V, D]`.
      slots: by checkpoint suffix, float64 `[V, D]` each.
    """

    def __init__(self, rows, optimizer, combiner, rate=None, quantization=None):
        self.rows = np.array(rows, np.float64)
        self.optimizer = optimizer
        self.combiner = combiner
        self.quantization = quantization
        self.rate = optimizer.learning_rate if rate is None else rate
        self.slots = {slot.suffix: np.full_like(self.rows, slot.initial_value)
                      for slot in optimizer.slots}

    def lookup(self, batch, weights=None):
        """Activations `[len(batch), D]` of the ids, and weights if any, of each sample."""
        result = np.zeros((len(batch), self.rows.shape[1]))
        rows = rounded(self.rows, self.quantization)
        for sample, share, row in self._occurrences(batch, weights):
            result[sample] += share * rows[row]
        return result

    def update(self, batches_and_gradients, cores=1):
        """One step from (batch, gradient `[len(batch), D]`, weights) of each feature.

        Every batch is dealt out to `cores` in equal shares, in order. With accumulation that does
        not matter. Without it a row is updated once for each core that has it: core `row % cores`
        first, then in ascending order, core 0 after the last one.
        """
        of_cores = [{} for _ in range(1 if self.optimizer.accumulate else cores)]
        for batch, gradient, weights in batches_and_gradients:
            for sample, share, row in self._occurrences(batch, weights):
                summed = of_cores[sample * len(of_cores) // len(batch)]
                summed[row] = summed.get(row, 0.0) + share * np.float64(gradient[sample])
        if self.optimizer.updates_all_rows:
            for row in range(len(self.rows)):
                of_cores[0].setdefault(row, np.zeros(self.rows.shape[1]))
        for row in set().union(*of_cores):
            for turn in range(len(of_cores)):
                summed = of_cores[(row + turn) % len(of_cores)]
                if row in summed:
                    self._update_row(row, summed[row])

    def _occurrences(self, batch, weights):
        """(sample, how much it counts there, id) for every id."""
        for sample, ids in enumerate(batch):
            own = np.ones(len(ids)) if weights is None else np.asarray(weights[sample], float)
            norm = {'sum': 1.0, None: 1.0, 'mean': own.sum(),
                    'sqrtn': np.sqrt((own**2).sum())}[self.combiner]
            for weight, row in zip(own, ids):
                yield sample, weight / norm if norm else 0.0, row

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
    """Returns values within two limits; a limit may be `None`."""
    lower = -np.inf if limits.lower is None else limits.lower
    upper = np.inf if limits.upper is None else limits.upper
    return np.clip(values, lower, upper)


def rounded(values, quantization):
    """Returns rows as a look-up gives them: unchanged without quantization."""
    if quantization is None:
        return values
    lower, upper, buckets = quantization.lower, quantization.upper, quantization.num_buckets
    step = (upper - lower) / (buckets - 1)
    kept = np.minimum(np.maximum(values, lower), upper)
    return np.floor(over(kept - lower, step) + .5) * step + lower


def over(values, divisor):
    """Returns a quotient that is 0 where the divisor is 0, as in the rules."""
    values, divisor = np.broadcast_arrays(values, divisor)
    return np.divide(values, divisor, where=divisor != 0, out=np.zeros(values.shape))


def sgd(optimizer, w, state, g, rate):
    return w - rate * g, state


def adagrad(optimizer, w, state, g, rate):
    accumulator = state['Adagrad'] + g**2
    return w - over(rate * g, np.sqrt(accumulator)), {'Adagrad': accumulator}


def adagrad_momentum(optimizer, w, state, g, rate):
    old = state['AdagradMomentum/Accumulator']
    accumulator = old + g**2 if optimizer.beta2 == 1 else (
        optimizer.beta2 * old + (1 - optimizer.beta2) * g**2)
    preconditioned = over(g, (accumulator + optimizer.epsilon)**(1 / optimizer.exponent))
    momenta = optimizer.momentum * state['AdagradMomentum/Momentum'] + preconditioned
    update = (optimizer.momentum * momenta + preconditioned if optimizer.use_nesterov
              else momenta)
    return w - rate * update, {'AdagradMomentum/Accumulator': accumulator,
                               'AdagradMomentum/Momentum': momenta}


def proximal(values, rates, l1, l2):
    return np.sign(values) * np.maximum(np.abs(values) - rates * l1, 0) / (1 + rates * l2)


def proximal_adagrad(optimizer, w, state, g, rate):
    accumulator = state['ProximalAdagrad'] + g**2
    rates = over(rate, np.sqrt(accumulator))
    return (proximal(w - rates * g, rates, optimizer.l1, optimizer.l2),
            {'ProximalAdagrad': accumulator})


def adam(optimizer, w, state, g, rate):
    m = optimizer.beta1 * state['Adam/m'] + (1 - optimizer.beta1) * g
    v = optimizer.beta2 * state['Adam/v'] + (1 - optimizer.beta2) * g**2
    root = (np.sqrt(v + optimizer.epsilon**2) if optimizer.use_sum_inside_sqrt
            else np.sqrt(v) + optimizer.epsilon)
    return w - over(rate * m, root), {'Adam/m': m, 'Adam/v': v}


def ftrl(optimizer, w, state, g, rate):
    if rate == 0:  # Else the formula divides by it: a table of that rate is frozen.
        return w, state
    old, accumulator = state['Ftrl'], state['Ftrl'] + g**2
    power = accumulator**-optimizer.lr_power
    sigma = power - old**-optimizer.lr_power
    if optimizer.multiply_linear_by_lr:
        linear = state['Ftrl_1'] + rate * g - sigma * w
        clamped = np.clip(linear, -rate * optimizer.l1, rate * optimizer.l1)
        w = over(clamped - linear, power + optimizer.beta + 2 * rate * optimizer.l2)
    else:
        linear = state['Ftrl_1'] + g - sigma * w / rate
        clamped = np.clip(linear, -optimizer.l1, optimizer.l1)
        w = over(clamped - linear, (power + optimizer.beta) / rate + 2 * optimizer.l2)
    return w, {'Ftrl': accumulator, 'Ftrl_1': linear}


def momentum(optimizer, w, state, g, rate):
    momenta = optimizer.momentum * state['Momentum'] + g
    update = g + optimizer.momentum * momenta if optimizer.use_nesterov else momenta
    return w - rate * update, {'Momentum': momenta}


def rms_prop(optimizer, w, state, g, rate):
    squares = optimizer.rho * state['RMSProp/ms'] + (1 - optimizer.rho) * g**2
    momenta = (optimizer.momentum * state['RMSProp/mom']
               + over(rate * g, np.sqrt(squares + optimizer.epsilon)))
    return w - momenta, {'RMSProp/ms': squares, 'RMSProp/mom': momenta}


def proximal_yogi(optimizer, w, state, g, rate):
    old = state['ProximalYogi']
    v = old + (1 - optimizer.beta2) * np.sign(g**2 - old) * g**2
    m = optimizer.beta1 * state['ProximalYogi_1'] + (1 - optimizer.beta1) * g
    rates = over(rate, np.sqrt(v) + optimizer.epsilon)
    return (proximal(w - rates * m, rates, optimizer.l1, optimizer.l2),
            {'ProximalYogi': v, 'ProximalYogi_1': m})


def frequency_estimator(optimizer, w, state, g, step):
    gap = step - state['FrequencyEstimator']
    capped = np.minimum(gap, optimizer.max_delta)
    is_outlier = gap >= optimizer.outlier_threshold * w
    return (np.where(is_outlier, capped, w * (1 - optimizer.tau) + capped * optimizer.tau),
            {'FrequencyEstimator': np.full_like(gap, step)})


def adadelta(optimizer, w, state, g, rate):
    old = state['Adadelta_1']
    squares = optimizer.rho * state['Adadelta'] + (1 - optimizer.rho) * g**2
    update = over(np.sqrt(old + optimizer.epsilon), np.sqrt(squares + optimizer.epsilon)) * g
    return w - rate * update, {'Adadelta': squares, 'Adadelta_1': (
        optimizer.rho * old + (1 - optimizer.rho) * update**2)}


def centered_rms_prop(optimizer, w, state, g, rate):
    rho = optimizer.rho
    squares = rho * state['CenteredRMSProp/ms'] + (1 - rho) * g**2
    mean = rho * state['CenteredRMSProp/mg'] + (1 - rho) * g
    momenta = (optimizer.momentum * state['CenteredRMSProp/mom']
               + over(rate * g, np.sqrt(squares - mean**2 + optimizer.epsilon)))
    return w - momenta, {'CenteredRMSProp/ms': squares, 'CenteredRMSProp/mom': momenta,
                         'CenteredRMSProp/mg': mean}


def lion(optimizer, w, state, g, rate):
    old = state['Lion']
    direction = np.sign(optimizer.beta1 * old + (1 - optimizer.beta1) * g)
    return w - rate * direction, {'Lion': optimizer.beta2 * old + (1 - optimizer.beta2) * g}


RULES = {
    optimizers.StochasticGradientDescent: sgd, optimizers.Adagrad: adagrad,
    optimizers.AdagradMomentum: adagrad_momentum, optimizers.ProximalAdagrad: proximal_adagrad,
    optimizers.Adam: adam, optimizers.Ftrl: ftrl, optimizers.Momentum: momentum,
    optimizers.RMSProp: rms_prop, optimizers.ProximalYogi: proximal_yogi,
    optimizers.FrequencyEstimator: frequency_estimator, optimizers.Adadelta: adadelta,
    optimizers.CenteredRMSProp: centered_rms_prop, optimizers.Lion: lion}


def excess(actual, expected, tolerance=2e-6):
    """Returns the worst error as a multiple of the error allowed; more than 1 is wrong.

    Allowed is `tolerance * (|expected| + the largest |expected|)`.
    """
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    allowed = tolerance * (np.abs(expected) + np.abs(expected).max(initial=0.0))
    off = np.abs(actual - expected)
    return np.max(np.divide(off, allowed, where=off != 0, out=np.zeros_like(off)), initial=0.0)


def assert_close(actual, expected, tolerance=2e-6):
    """Asserts that no element is off by more than is allowed; see `excess`."""
    times = excess(actual, expected, tolerance)
    assert times <= 1, f'off by up to {times:.3g} times what is allowed'
