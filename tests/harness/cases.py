"""Lists the cases of the conformance suite: every optimizer with every option and kind of ids.

A case is one table. Only its number tells its ids and gradients from those of other cases, so that
one graph can hold all tables.
"""

import dataclasses
import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core import optimizers
from estimator_tpu_embedding.core.optimizers import (
    Adadelta,
    Adagrad,
    AdagradMomentum,
    Adam,
    Bounds,
    CenteredRMSProp,
    DynamicRate,
    FrequencyEstimator,
    Ftrl,
    Lion,
    Momentum,
    Optimizer,
    ProximalAdagrad,
    ProximalYogi,
    RMSProp,
    StochasticGradientDescent,
)
from estimator_tpu_embedding.core.specs import TableSpec

STEPS = 5
SAMPLES = 60  # of all cores: what 1, 3, 4 and 5 cores divide
LENGTH = 2
SHAPES = ((23, 1), (17, 5), (16, 8), (4, 128))
COMBINERS = ('sum', 'mean', 'sqrtn')
FEATURES = ('path', 'plain', 'weighted')  # in the order of a plan
RATES = (.1, .35, 0., .21, .47)


def rate_of_step(step):
    """A learning rate that is a function of the step, and 0 in one."""
    return tf.gather(tf.constant(RATES), step)


OF_STEP = DynamicRate(function=rate_of_step)
GRADIENTS, WEIGHTS = Bounds(lower=-.8, upper=.6), Bounds(lower=-.9, upper=1.1)
# The common options. `rate` belongs to the table, the others are fields of the optimizer.
COMMON = (
    {}, {'learning_rate': 0., 'decay': .05}, {'rate': OF_STEP, 'clip_weights': Bounds(lower=-.5)},
    {'clip_gradients': GRADIENTS, 'decay': .1, 'decay_times_rate': True},
    {'clip_gradients': Bounds(upper=.5), 'clip_weights': WEIGHTS, 'decay': .05},
    {'accumulate': False, 'clip_weights': WEIGHTS, 'decay': .1, 'decay_times_rate': True})
# Each optimizer, and what it alone has.
OPTIMIZERS = (
    (StochasticGradientDescent(learning_rate=.5), ()),
    (Adagrad(learning_rate=.3), ({'initial_accumulator': 2.},)),
    (AdagradMomentum(learning_rate=.3, momentum=.8), (
        {'use_nesterov': True, 'momentum': .2}, {'exponent': 3.},
        {'use_nesterov': True, 'exponent': 1.5, 'beta2': .7, 'epsilon': .1})),
    (ProximalAdagrad(learning_rate=.3), (
        {'l1': .2}, {'l1': .1, 'l2': .2, 'initial_accumulator': .5})),
    (Adam(learning_rate=.1), (
        {'use_sum_inside_sqrt': False}, {'beta1': .7, 'beta2': .8, 'epsilon': .1},
        {'use_sum_inside_sqrt': False, 'epsilon': .1, 'beta1': 0., 'beta2': .5})),
    (Adam(learning_rate=.1, use_non_lazy_adam=True), (
        {'use_sum_inside_sqrt': False, 'beta1': .7, 'beta2': .8, 'epsilon': .01},)),
    (Ftrl(learning_rate=.3), (
        {'l1': .2, 'lr_power': -.7}, {'lr_power': 0.}, {'l2': .1, 'initial_accumulator': .5},
        {'beta': .3, 'multiply_linear_by_lr': True, 'initial_linear': .1},
        {'initial_accumulator': 0., 'allow_zero_accumulator': True, 'beta': .1},
        {'l1': .2, 'l2': .1, 'lr_power': -.6, 'beta': .3, 'multiply_linear_by_lr': True,
         'rate': OF_STEP})),
    (Momentum(learning_rate=.1, momentum=.8), (
        {'use_nesterov': True}, {'use_nesterov': True, 'momentum': .2})),
    (RMSProp(learning_rate=.1, rho=.9, momentum=.8, epsilon=.01), (
        {'rho': .5, 'momentum': .1}, {'epsilon': 1.})),
    (ProximalYogi(learning_rate=.1), (
        {'l1': .2, 'beta1': .7}, {'l2': .1, 'beta2': .8},
        {'epsilon': .1, 'initial_accumulator': .2})),
    (FrequencyEstimator(learning_rate=1., tau=.05, max_delta=.8, outlier_threshold=2.,
                        weight_exponent=1.), (
        {'tau': .7, 'max_delta': .2}, {'outlier_threshold': .1, 'weight_exponent': 2.})),
    (Adadelta(learning_rate=.5), ({'rho': .5}, {'epsilon': .01})),
    (CenteredRMSProp(learning_rate=.1, rho=.9, momentum=.8, epsilon=.01), (
        {'rho': .5, 'momentum': .1}, {'epsilon': 1.})),
    (Lion(learning_rate=.1), ({'beta1': .7, 'beta2': .5},)),
    (Lion(learning_rate=.1, use_non_lazy_lion=True), ({'beta1': .7, 'beta2': .5},)))


@dataclasses.dataclass(frozen=True)
class Case:
    """One table of the suite.

    Attributes:
      name: of the case, as a failure names it.
      number: of the case; it sets the shape, the combiner, the ids and the gradients.
      optimizer: of the table.
      rate: of the table, or `None`.
    """

    name: str
    number: int
    optimizer: Optimizer
    rate: DynamicRate | None

    @property
    def table(self):
        """The name of the table."""
        return f't{self.number:03}'

    @property
    def shape(self):
        return SHAPES[self.number % len(SHAPES)]

    @property
    def rows(self):
        """The rows that the table begins with."""
        return np.random.default_rng(self.number).normal(size=self.shape).astype(np.float32)

    @property
    def scale(self):
        """A factor of the gradients of this table alone; a small binary number."""
        return np.float32(.5 + self.number % 128 / 128)

    def ids(self, ids):
        """Returns the ids of this table, made from the ids of its shape, which may be a tensor."""
        return (ids + self.number) % self.shape[0]

    def spec(self):
        return TableSpec(
            name=self.table, vocabulary_size=self.shape[0], dimension=self.shape[1],
            combiner=COMBINERS[self.number % len(COMBINERS)], optimizer=self.optimizer,
            rate=self.rate, initializer=tf.constant_initializer(self.rows))


def all_cases():
    """Every case, numbered in order."""
    found = []
    for optimizer, own in OPTIMIZERS:
        common = [change for change in COMMON
                  if change.get('accumulate', True) or not optimizer.updates_all_rows]
        for change in itertools.chain(common, own):
            fields = {name: value for name, value in change.items() if name != 'rate'}
            lazy = ', not lazy' * optimizer.updates_all_rows
            options = ''.join(f', {name}={value}' for name, value in fields.items())
            rate = change.get('rate')
            found.append(Case(
                f'{optimizer.field}{lazy}{options}{", rate of the step" * (rate is not None)}',
                len(found), dataclasses.replace(optimizer, **fields), rate))
    return found


def uncovered(cases):
    """Names what the cases leave out: `Adam.beta1` for a field, `Adam` for an optimizer.

    A field is covered if it is left at its default in one case, and is something else in
    another; one without default takes two values. A rate is constant, 0 and a function.
    """
    found = []
    for cls in optimizers.OPTIMIZERS.values():
        own = [case for case in cases if type(case.optimizer) is cls]
        if not own:
            found.append(cls.__name__)
            continue
        for field in dataclasses.fields(cls):
            values = {getattr(case.optimizer, field.name) for case in own}
            if len(values) < 2 or field.default not in {*values, dataclasses.MISSING}:
                found.append(f'{cls.__name__}.{field.name}')
        if not any(case.rate for case in own) or all(case.optimizer.learning_rate for case in own):
            found.append(f'{cls.__name__}.learning_rate')
    return sorted(set(found))


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
