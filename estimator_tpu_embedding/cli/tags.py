"""Compares the learning-rate tags of two configs.

A tag is a number that stands for a function. TensorFlow numbers the functions of a job in an order
that varies from run to run. So two tags are the same if the same tables share them in both
configs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ..proto.codec import Config
from .config_view import TableView

_UNPAIRED = 2**32
"""Above all tags, which have 32 bits."""


class Tags:
    """Pairs each tag of one config with a tag of the other.

    Args:
      pairs: tables of both configs with the same name, sorted by it.
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
        """Returns whether two tables have the same rate, as far as configs tell."""
        if a.tag is None or b.tag is None:
            return a.tag is b.tag and a.learning_rate == b.learning_rate
        return self._in_b.get(a.tag) == b.tag

    def others(self, a: TableView, b: TableView) -> tuple[str, str]:
        """Returns two equal tags that stand for different functions, each with another table that
        has it.
        """
        first, second = (f'tag {table.tag}, as table {names[table.tag]}'
                         for table, names in zip((a, b), self._first) if table.tag is not None)
        return first, second

    def aligned(self, a: Sequence[TableView], b: Sequence[TableView]
                ) -> tuple[list[TableView], list[TableView]]:
        """Returns the tables without a partner of the same name, with tags that can be compared."""
        return _renumbered(a, self._in_b), _renumbered(b, self._of_b)


def _renumbered(tables: Sequence[TableView], known: Mapping[int, int]) -> list[TableView]:
    """Renumbers the tags of tables: known ones by `known`, the others in their order of
    appearance.
    """
    tags = dict(known)
    for table in tables:
        if table.tag is not None:
            tags.setdefault(table.tag, _UNPAIRED + len(tags))
    return [table if table.tag is None else dataclasses.replace(table, tag=tags[table.tag])
            for table in tables]


def by_appearance(config: Config) -> Config:
    """Returns a copy whose tags are 0, 1, ... in the order in which its tables first name them."""
    copy = Config()
    copy.CopyFrom(config)
    tags: dict[int, int] = {}
    for table in copy.table_descriptor:
        rate = table.optimization_parameters.learning_rate
        if rate.HasField('dynamic'):
            rate.dynamic.tag = tags.setdefault(rate.dynamic.tag, len(tags))
    return copy
