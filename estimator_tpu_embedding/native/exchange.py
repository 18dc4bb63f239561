"""Encodes an exchange as the attributes of the operations EteSplit, EteMerge and EteSpread."""

from __future__ import annotations

from typing import Any

from ..core.exchange import Exchange
from ..core.partition import STRATEGIES
from .layout import COMBINERS


def attributes(exchange: Exchange) -> dict[str, Any]:
    """Returns the attributes of an exchange, by name; the operations count their lists themselves.

    `feature_...` are in exchange order, `table_...` in the order of the plan.
    """
    plan, features = exchange.plan, exchange.features
    return {
        'table_names': [table.name for table in plan.tables],
        'table_rows': [table.vocabulary_size for table in plan.tables],
        'table_widths': [table.dimension for table in plan.tables],
        'table_combiners': [COMBINERS[table.combiner] for table in plan.tables],
        'feature_names': [feature.name for feature in features],
        'feature_tables': [plan.table_index(feature.table) for feature in features],
        'feature_samples': list(exchange.samples),
        'feature_weighted': [int(bool(feature.weight_feature)) for feature in features],
        'num_hosts': plan.topology.num_hosts,
        'strategy': STRATEGIES.index(plan.strategy)}
