"""Learning-rate tags of two configs: numbers that stand for functions, and are dealt out anew.

TensorFlow numbers the functions of a job in an order that varies from run to run. So tags mean
the same if tables share a function in both configs where they share one in either.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ..proto.codec import Config
from .config_view import TableView

_UNPAIRED = 2**32
"""Above all tags, which have 32 bits."""


class Tags:
    """Which tag of one config is which of another.

    Args:
      pairs: tables of both with the same name, sorted by it.
    """

    def __init__(self, pairs: Iterable[tuple[TableView, TableView]]) -> None:
        self._in_b: dict[int, int] = {}
        self._of_b: dict[int, int] = {}
        self._first: tuple[dict[int, str], dict[int, str]] = {}, {}
        for a, b in pairs:
            for table, first in zip((a, b), self._first):
                if table.tag is not None:
                    first.setdefault(table.tag, table.name)
            if a.tag is not None and b.tag is not None and (
                    a.tag not in self._in_b and b.tag not in self._of_b):
                self._in_b[a.tag] = self._of_b[b.tag] = b.tag

    def agree(self, a: TableView, b: TableView) -> bool:
        """Whether two tables have the same rate, so far as configs tell."""
        if a.tag is None or b.tag is None:
            return a.tag is b.tag and a.learning_rate == b.learning_rate
        return self._in_b.get(a.tag) == b.tag

    def others(self, a: TableView, b: TableView) -> tuple[str, str]:
        """Two tags of equal number that do not agree, each with a table that has it too."""
        first, second = (f'tag {table.tag}, as table {names[table.tag]}'
                         for table, names in zip((a, b), self._first) if table.tag is not None)
        return first, second

    def aligned(self, a: Sequence[TableView], b: Sequence[TableView]
                ) -> tuple[list[TableView], list[TableView]]:
        """Tables without a pair of their name, with tags that can be compared."""
        return _renumbered(a, self._in_b), _renumbered(b, self._of_b)


def _renumbered(tables: Sequence[TableView], known: Mapping[int, int]) -> list[TableView]:
    """The tables with tags by what is known, and the others in the order they appear."""
    tags = dict(known)
    for table in tables:
        if table.tag is not None:
            tags.setdefault(table.tag, _UNPAIRED + len(tags))
    return [table if table.tag is None else dataclasses.replace(table, tag=tags[table.tag])
            for table in tables]


def by_appearance(config: Config) -> Config:
    """A copy whose tags are 0, 1, ... in the order in which its tables name them first."""
    copy = Config()
    copy.CopyFrom(config)
    tags: dict[int, int] = {}
    for table in copy.table_descriptor:
        rate = table.optimization_parameters.learning_rate
        if rate.HasField('dynamic'):
            rate.dynamic.tag = tags.setdefault(rate.dynamic.tag, len(tags))
    return copy
