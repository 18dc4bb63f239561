"""Computes the rows and bytes of tables on each host."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.partition import STRATEGIES, Partition
from .config_view import TableView


class Extent(NamedTuple):
    """The range of one number per host; `imbalance` is most over mean, and 1 is even."""

    least: int
    most: int
    imbalance: float

    def text(self, show: Callable[[int], str]) -> str:
        """Returns all three as text."""
        return f'{show(self.least)} to {show(self.most)}, max/mean {self.imbalance:.2f}'

    def data(self) -> dict[str, Any]:
        """Returns all three as data for JSON."""
        return {'min': self.least, 'max': self.most, 'imbalance': round(self.imbalance, 6)}


def imbalance(load: Sequence[float]) -> float:
    """Returns most over mean; 1 is even.

    >>> imbalance([3, 1])
    1.5
    """
    total = sum(load)
    return max(load) * len(load) / total if total else 1.0


def extent(of_host: Sequence[int]) -> Extent:
    """Returns the extent of one number per host."""
    return Extent(min(of_host), max(of_host), imbalance(of_host))


def rows_extent(table: TableView, hosts: int) -> Extent:
    """Returns the extent of the rows of one table. `div` and `mod` give hosts the same numbers of
    rows.
    """
    partition = _partition(table, hosts)
    most, rows = partition.rows_on(0), partition.vocabulary_size
    return Extent(partition.rows_on(hosts - 1), most, most * hosts / rows if rows else 1.0)


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
