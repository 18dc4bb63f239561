"""Encodes a plan as the attributes of the operation that makes the native engine.

Each optimizer becomes the number of its rule, and 24 floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..core import optimizers as o
from ..core.optimizers import Optimizer
from ..core.partition import STRATEGIES
from ..core.plan import Plan
from ..core.specs import FeatureSpec
from ..core.table_memory import TableMemory

COMBINERS = {None: 0, 'sum': 0, 'mean': 1, 'sqrtn': 2}
"""A table without a combiner has one id per sample, so a sum gives the row of that id."""

NO_RULE = -1

OPTIONS = 24
"""How many floats each table has: kOptions in `src/options.h`."""

SAVE_WAIT_MS = 120_000
"""How long an update waits for a run that saves the same table: long enough to save some 50 GB."""

RULES: dict[type[Optimizer], tuple[int, Callable[[Any], tuple[float, ...]]]] = {
    o.StochasticGradientDescent: (0, lambda one: ()),
    o.Adagrad: (1, lambda one: ()),
    o.AdagradMomentum: (2, lambda one: (
        one.momentum, one.use_nesterov, 1 / one.exponent, one.beta2, 1 - one.beta2, one.epsilon)),
    o.ProximalAdagrad: (3, lambda one: (one.l1, one.l2)),
    o.Adam: (4, lambda one: (
        one.beta1, 1 - one.beta1, one.beta2, 1 - one.beta2, one.epsilon, one.epsilon**2,
        one.use_sum_inside_sqrt)),
    o.Ftrl: (5, lambda one: (
        one.l1, one.l2, -one.lr_power, one.beta, one.multiply_linear_by_lr)),
    o.Momentum: (6, lambda one: (one.momentum, one.use_nesterov)),
    o.RMSProp: (7, lambda one: (one.rho, 1 - one.rho, one.momentum, one.epsilon)),
    o.ProximalYogi: (8, lambda one: (
        one.l1, one.l2, one.beta1, 1 - one.beta1, 1 - one.beta2, one.epsilon)),
    o.FrequencyEstimator: (9, lambda one: (
        one.tau, 1 - one.tau, one.max_delta, one.outlier_threshold)),
    o.Adadelta: (10, lambda one: (one.rho, 1 - one.rho, one.epsilon)),
    o.CenteredRMSProp: (11, lambda one: (one.rho, 1 - one.rho, one.momentum, one.epsilon)),
    o.Lion: (12, lambda one: (one.beta1, 1 - one.beta1, one.beta2, 1 - one.beta2))}
"""The number of each rule, and a function that returns the rule's own options, as its struct in
`src/rules.h` has them in `o[i]`.

If a rule uses `1 - b`, that is passed beside `b`. It is computed in double precision, as in
TensorFlow's ops, because `1 - float32(0.999)` is off by 1e-5.
"""


def attributes(plan: Plan, threads: int, memory: TableMemory | None = None) -> dict[str, Any]:
    """Returns the attributes of the operation EteEngine, by name.

    Args:
      plan: the plan of the engine.
      threads: how many the engine has; 0 is one per core that the process may use.
      memory: where it has large tables; `None` has all of them in memory.
    """
    numbers, options = zip(*[
        (RULES[type(table.optimizer)][0], options_of(table.optimizer))
        if table.optimizer is not None and plan.mode == 'training'
        else (NO_RULE, (0.,) * OPTIONS) for table in plan.tables])
    return {
        **layout_attributes(plan, plan.features),
        'table_rules': list(numbers),
        'table_options': [option for of_table in options for option in of_table],
        'slot_counts': [len(plan.slots(table.name)) for table in plan.tables],
        'table_grids': _grids(plan),
        'table_ids': [] if plan.owned is None else [
            number for table in plan.tables for number in plan.ids_of_rows(table.name)],
        'threads': threads,
        'table_directory': '' if memory is None else memory.directory,
        'resident': 0 if memory is None else memory.bytes,
        'patience_ms': SAVE_WAIT_MS}


def layout_attributes(plan: Plan, features: Sequence[FeatureSpec]) -> dict[str, Any]:
    """Returns the attributes that say where ids are; `features` are those of the plan, in order."""
    return {
        'table_names': [table.name for table in plan.tables],
        'table_rows': [table.vocabulary_size for table in plan.tables],
        'table_widths': [table.dimension for table in plan.tables],
        'table_combiners': [COMBINERS[table.combiner] for table in plan.tables],
        'num_hosts': plan.topology.num_hosts,
        'strategy': STRATEGIES.index(plan.strategy),
        'feature_names': [feature.name for feature in features],
        'feature_tables': [plan.table_index(feature.table) for feature in features],
        'feature_samples': [plan.num_samples(feature) for feature in features],
        'feature_weighted': [int(bool(feature.weight_feature)) for feature in features]}


def options_of(optimizer: Optimizer) -> tuple[float, ...]:
    """Returns the options of a table that this optimizer trains, in the order of `src/options.h`.

    Args:
      optimizer: has no `problems`.

    Returns:
      `OPTIONS` floats. First come flags, 0 or 1: whether gradients are accumulated, whether all
      rows are updated, whether weights decay. Then the decay, and whether it is multiplied by the
      rate. Then the bounds on weights and on gradients, infinite for none. Then the rule's own
      options, and zeros.
    """
    limits = [limit for bounds in (optimizer.clip_weights, optimizer.clip_gradients) for limit in (
        -math.inf if bounds.lower is None else bounds.lower,
        math.inf if bounds.upper is None else bounds.upper)]
    options = (
        optimizer.accumulate, optimizer.updates_all_rows,
        optimizer.decay is not None, optimizer.decay or 0.0, optimizer.decay_times_rate,
        *limits, *RULES[type(optimizer)][1](optimizer))
    return tuple(map(float, options)) + (0.0,) * (OPTIONS - len(options))


def _grids(plan: Plan) -> list[float]:
    """Encodes the rounding of looked-up rows as in `src/layout.h`; empty if no table rounds."""
    if not any(table.quantization for table in plan.tables):
        return []
    return [number for table in plan.tables for number in (
        (-math.inf, math.inf, 0.) if table.quantization is None else
        (table.quantization.lower, table.quantization.upper, table.quantization.step))]


def tables_of_parts(plan: Plan) -> Iterator[str]:
    """Yields the name of the table of each part of the engine, in the order of the parts.

    The order is by table, then its rows and each slot, then the hosts that hold rows.
    """
    for table in plan.tables:
        hosts = min(table.vocabulary_size, plan.topology.num_hosts)
        for _ in range((1 + len(plan.slots(table.name))) * hosts):
            yield table.name
