"""A plan as the numbers that the engine is made from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..core.partition import STRATEGIES
from ..core.plan import Plan
from . import rules

COMBINERS = {None: 0, 'sum': 0, 'mean': 1, 'sqrtn': 2}
"""A table without a combiner has one id per sample, of which the sum is that one."""

NO_RULE = -1

PATIENCE_MS = 120_000
"""How long the engine waits before it writes what another run saves: some 50 GB take so long."""


def attributes(plan: Plan, threads: int, patience_ms: int = PATIENCE_MS) -> dict[str, Any]:
    """The attributes of the operation EteEngine, by name.

    Args:
      plan: what the engine is to execute.
      threads: how many it has; 0 is one per core that the process may use.
      patience_ms: how long an update waits for runs that save a table before it fails, in
        milliseconds; from 0 to 86,400,000, which is a day.
    """
    numbers, options = zip(*[
        rules.encoded(table.optimizer) if table.optimizer is not None and plan.mode == 'training'
        else (NO_RULE, [0.] * rules.OPTIONS) for table in plan.tables])
    return {
        'table_names': [table.name for table in plan.tables],
        'feature_names': [feature.name for feature in plan.features],
        'table_rows': [table.vocabulary_size for table in plan.tables],
        'table_widths': [table.dimension for table in plan.tables],
        'table_combiners': [COMBINERS[table.combiner] for table in plan.tables],
        'table_rules': list(numbers),
        'table_options': [option for of_table in options for option in of_table],
        'slot_counts': [len(plan.slots(table.name)) for table in plan.tables],
        'table_grids': _grids(plan),
        'num_hosts': plan.topology.num_hosts,
        'strategy': STRATEGIES.index(plan.strategy),
        'feature_tables': [plan.table_index(feature.table) for feature in plan.features],
        'feature_samples': [plan.num_samples(feature) for feature in plan.features],
        'feature_weighted': [int(bool(feature.weight_feature)) for feature in plan.features],
        'threads': threads,
        'patience_ms': patience_ms}


def _grids(plan: Plan) -> list[float]:
    """What looked up rows are rounded to, as `src/layout.h` has it; empty if no table does that."""
    if not any(table.quantization for table in plan.tables):
        return []
    return [number for table in plan.tables for number in (
        (-math.inf, math.inf, 0.) if table.quantization is None else
        (table.quantization.lower, table.quantization.upper, table.quantization.step))]


def tables_of_parts(plan: Plan) -> Iterator[str]:
    """Yields for each part of the engine, in the order of their numbers, the name of its table.

    They are counted by table, by its rows and then each slot, by host that holds rows.
    """
    for table in plan.tables:
        hosts = min(table.vocabulary_size, plan.topology.num_hosts)
        for _ in range((1 + len(plan.slots(table.name))) * hosts):
            yield table.name
