"""Encodes a plan as the attributes of the operation that makes the native engine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..core.partition import STRATEGIES
from ..core.plan import Plan
from . import rules

COMBINERS = {None: 0, 'sum': 0, 'mean': 1, 'sqrtn': 2}
"""A table without a combiner has one id per sample, so a sum gives the row of that id."""

NO_RULE = -1

PATIENCE_MS = 120_000
"""How long an update waits for a run that saves the same table: long enough to save some 50 GB."""


def attributes(plan: Plan, threads: int, patience_ms: int = PATIENCE_MS) -> dict[str, Any]:
    """Returns the attributes of the operation EteEngine, by name.

    Args:
      plan: the plan of the engine.
      threads: how many the engine has; 0 is one per core that the process may use.
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
        'table_ids': [] if plan.owned is None else [
            number for table in plan.tables for number in plan.ids_of_rows(table.name)],
        'num_hosts': plan.topology.num_hosts,
        'strategy': STRATEGIES.index(plan.strategy),
        'feature_tables': [plan.table_index(feature.table) for feature in plan.features],
        'feature_samples': [plan.num_samples(feature) for feature in plan.features],
        'feature_weighted': [int(bool(feature.weight_feature)) for feature in plan.features],
        'threads': threads,
        'patience_ms': patience_ms}


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
