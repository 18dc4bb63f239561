"""Computes the rows and bytes of tables on each host."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.partition import STRATEGIES, Partition
from .config_view import TableView


def imbalance(load: Sequence[float]) -> float:
    """Returns most over mean; 1 is even.

    >>> imbalance([3, 1])
    1.5
    """
    total = sum(load)
    return max(load) * len(load) / total if total else 1.0


def extent(of_host: Sequence[int]) -> dict[str, Any]:
    """Returns least, most and imbalance of one number per host, as data for JSON."""
    return {'min': min(of_host), 'max': max(of_host), 'imbalance': round(imbalance(of_host), 6)}


def extent_text(one: dict[str, Any], show: Callable[[int], str]) -> str:
    """Returns an extent as text."""
    return f'{show(one["min"])} to {show(one["max"])}, max/mean {one["imbalance"]:.2f}'


def rows_extent(table: TableView, hosts: int) -> dict[str, Any]:
    """Returns the extent of the rows of one table. `div` and `mod` give hosts the same numbers of
    rows.
    """
    partition = _partition(table, hosts)
    most, rows = partition.rows_on(0), partition.vocabulary_size
    return {'min': partition.rows_on(hosts - 1), 'max': most,
            'imbalance': round(most * hosts / rows, 6) if rows else 1.0}


def _partition(table: TableView, hosts: int) -> Partition:
    return Partition(strategy=STRATEGIES[0], num_hosts=hosts, vocabulary_size=max(table.rows, 0))


def per_host(tables: Iterable[TableView], hosts: int, weigh: Callable[[TableView], int]
             ) -> list[int]:
    """Returns the sum over all tables for each host. It is the same under `div` and `mod`.

    Args:
      tables: of the config.
      hosts: number of hosts that share the rows.
      weigh: returns the weight of a row of a table: 1 for rows, its bytes for bytes.
    """
    least, steps = 0, [0] * hosts
    for table in tables:
        partition, weight = _partition(table, hosts), weigh(table)
        least += partition.rows_on(hosts - 1) * weight
        steps[0] += weight  # The first `fuller_hosts` hosts hold a row more.
        steps[partition.fuller_hosts] -= weight
    return [least + more for more in itertools.accumulate(steps)]
