"""Writes optimizers as calls of the classes of either API, and says what a class cannot take."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from ...core.optimizer_base import Bounds, Optimizer
from .facts import LOST, NO_OPTIMIZER, Note, Table
from .text import Call, Expression, call, number

_STRENGTHS = {'l1': 'l1_regularization_strength', 'l2': 'l2_regularization_strength'}
_FTRL = {'lr_power': 'learning_rate_power', **_STRENGTHS, 'beta': 'beta',
         'initial_accumulator': 'initial_accumulator_value',
         'multiply_linear_by_lr': 'multiply_linear_by_learning_rate',
         'allow_zero_accumulator': 'allow_zero_accumulator'}
_MOMENTUM = {name: name for name in (
    'momentum', 'use_nesterov', 'exponent', 'beta2', 'epsilon')}
_ADAM = {'epsilon': 'epsilon', 'use_non_lazy_adam': 'lazy_adam',
         'use_sum_inside_sqrt': 'sum_inside_sqrt'}

TF2: dict[str, tuple[str, dict[str, str]]] = {
    'stochastic_gradient_descent': ('api.SGD', {}),
    'adagrad': ('api.Adagrad', {'initial_accumulator': 'initial_accumulator_value'}),
    'adagrad_momentum': ('api.AdagradMomentum', _MOMENTUM),
    'ftrl': ('api.FTRL', _FTRL),
    'adam': ('api.Adam', {'beta1': 'beta_1', 'beta2': 'beta_2', **_ADAM})}
"""Class, and arguments by attributes of the optimizer, by the algorithm's field in the proto."""

TFRS = {name: one for name, one in TF2.items() if name != 'adagrad_momentum'}
"""The optimizers that the layer of TFRS takes."""

TF1: dict[str, tuple[str, dict[str, str]]] = {
    'stochastic_gradient_descent': ('api.StochasticGradientDescentParameters', {}),
    'adagrad': ('api.AdagradParameters', {'initial_accumulator': 'initial_accumulator'}),
    'adam': ('api.AdamParameters', {'beta1': 'beta1', 'beta2': 'beta2', **_ADAM}),
    'ftrl': ('api.FtrlParameters', _FTRL),
    'adagrad_momentum': ('tpu_embedding.AdagradMomentumParameters', _MOMENTUM),
    'proximal_adagrad': ('tpu_embedding.ProximalAdagradParameters', {
        'initial_accumulator': 'initial_accumulator', **_STRENGTHS}),
    'momentum': ('tpu_embedding.MomentumParameters', {
        'momentum': 'momentum', 'use_nesterov': 'use_nesterov'}),
    'rms_prop': ('tpu_embedding.RMSPropParameters', {
        name: name for name in ('rho', 'momentum', 'epsilon')}),
    'proximal_yogi': ('tpu_embedding.ProximalYogiParameters', {
        'beta1': 'beta1', 'beta2': 'beta2', 'epsilon': 'epsilon', **_STRENGTHS,
        'initial_accumulator': 'initial_accumulator_value'}),
    'frequency_estimator': ('tpu_embedding.FrequencyEstimatorParameters', {
        name: name for name in ('tau', 'max_delta', 'outlier_threshold', 'weight_exponent')})}

FACES = {'tf2': ('TPUEmbedding of TF2', TF2), 'tfrs': ('The layer of TFRS', TFRS),
         'tf1': ('TPUEstimator', TF1)}
"""By target: what takes optimizers there, and which."""

_NEGATED = 'use_non_lazy_adam'
_WITHOUT_TAIL = 'frequency_estimator'
_OF_SLOTS = 'initial_accumulator'


def is_writable(table: Table, target: str) -> bool:
    """Whether the target has the optimizer of a table, if the table has one."""
    return not table.algorithm or (table.spec.optimizer is not None
                                   and table.algorithm in FACES[target][1])


def notes_of(table: Table, where: str, target: str) -> Iterator[Note]:
    """Yields what the target cannot say of the optimizer of a table."""
    face, classes = FACES[target]
    optimizer = table.spec.optimizer
    if optimizer is None or table.algorithm not in classes:
        if table.algorithm:
            yield Note(where=where, code=NO_OPTIMIZER, remedy='The table has none here: choose one '
                       'yourself, with a rate of its own.', fact=(
                           f'{face} has no optimizer like {_described(table)}'))
        return
    if target != 'tf1' and optimizer.field == 'ftrl' and table.is_whole and not getattr(
            optimizer, _OF_SLOTS) > 0:
        yield Note(where=where, code=LOST, fact='its FTRL accumulators begin at 0, and TF2 takes '
                   'only values above 0', remedy='The default stands here. It matters for rows '
                   'that no checkpoint brings.')
    if getattr(optimizer, 'initial_linear', 0):
        yield Note(where=where, code=LOST, fact='the linear terms of its FTRL do not begin at 0, '
                   'which no argument says')
    if optimizer.field == _WITHOUT_TAIL and dataclasses.replace(
            optimizer, learning_rate=1.0) != _bare(optimizer):
        yield Note(where=where, code=LOST, fact='FrequencyEstimatorParameters has no arguments '
                   'for bounds, a decay or accumulation')
    if table.packed and target == 'tf1':
        yield Note(where=where, code=LOST, fact='TPUEstimator does not pack narrow rows '
                   '(low_dimensional_packing_status)', remedy='It changes no number.')


def _described(table: Table) -> str:
    """Returns the algorithm of a table with its numbers, for a comment."""
    if table.spec.optimizer is None:
        return table.algorithm
    rest = {field.name: getattr(table.spec.optimizer, field.name)
            for field in dataclasses.fields(table.spec.optimizer)}
    if table.dynamic is not None:
        rest['learning_rate'] = 'dynamic'
    if not table.is_whole:
        rest.pop(_OF_SLOTS, None)
    plain = {'clip_weights': Bounds(), 'clip_gradients': Bounds(), 'decay': None,
             'decay_times_rate': False, 'accumulate': True}
    told = ', '.join(f'{name}={_plain(value)}' for name, value in rest.items()
                     if name not in plain or value != plain[name])
    return f'{table.algorithm} ({told})'


def _plain(value: object) -> str:
    if isinstance(value, Bounds):
        return f'[{value.lower}, {value.upper}]'
    return value if isinstance(value, str) else number(value)


def written(optimizer: Optimizer, rate: Expression, target: str, *, is_whole: bool, packed: bool
            ) -> Call:
    """Returns the call that makes an optimizer, with everything that the target takes.

    The arguments of its own are all written, because their defaults differ between the APIs.

    Args:
      optimizer: of an algorithm of the target.
      rate: the learning rate, as Python.
      target: a key of `FACES`.
      is_whole: whether the first values of slots are known; otherwise the default stands.
      packed: whether narrow rows are packed.
    """
    function, names = FACES[target][1][optimizer.field]
    arguments: dict[str, Expression] = {}
    if optimizer.field != _WITHOUT_TAIL:
        arguments['learning_rate'] = rate
    for attribute, argument in names.items():
        value = getattr(optimizer, attribute)
        if attribute == _OF_SLOTS and (not is_whole or target != 'tf1' and not value > 0):
            continue
        arguments[argument] = number(not value if attribute == _NEGATED else value)
    if optimizer.field != _WITHOUT_TAIL:
        arguments |= _tail(optimizer, target)
    if packed and target != 'tf1':
        arguments['low_dimensional_packing_status'] = 'True'
    return call(function, arguments)


def _tail(optimizer: Optimizer, target: str) -> Mapping[str, Expression]:
    """Returns the arguments that all classes take, if they differ from their defaults."""
    found: dict[str, Expression] = {}
    if not optimizer.accumulate:
        found['use_gradient_accumulation'] = 'False'
    found |= _bounds('clip_weight', optimizer.clip_weights)
    if optimizer.decay:
        found['weight_decay_factor'] = number(optimizer.decay)
        if optimizer.decay_times_rate:
            found['multiply_weight_decay_factor_by_learning_rate'] = 'True'
    limits = optimizer.clip_gradients
    if target == 'tf1':
        found |= _bounds('clip_gradient', limits)
    elif limits != Bounds():
        lower, upper = (('None' if one is None else number(one))
                        for one in (limits.lower, limits.upper))
        found['clipvalue'] = f'({lower}, {upper})'
    return found


def _bounds(name: str, bounds: Bounds) -> dict[str, Expression]:
    return {f'{name}_{end}': number(value) for end, value in (
        ('min', bounds.lower), ('max', bounds.upper)) if value is not None}


def _bare(optimizer: Optimizer) -> Optimizer:
    """Returns an optimizer with its own numbers, and the defaults of all optimizers."""
    return dataclasses.replace(
        optimizer, learning_rate=1.0, accumulate=True, clip_weights=Bounds(),
        clip_gradients=Bounds(), decay=None, decay_times_rate=False)
