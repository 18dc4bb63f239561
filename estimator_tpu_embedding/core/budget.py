"""Computes the memory that tables need, and refuses tables that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..errors import ConfigError, Problem, bytes_text, quoted
from .plan import BYTES_PER_ELEMENT, Plan
from .table_memory import TableMemory

_MOST_LISTED = 5
_REMEDY = 'Take fewer or narrower rows, an optimizer with fewer slots, or more memory.'


class Memory(NamedTuple):
    """The memory in bytes that a process may use, and what sets the limit, as messages name it."""

    bytes: int
    source: str


class Need(NamedTuple):
    """The memory that a table needs: the same for any number of hosts, which share a process."""

    table: str
    rows: int
    width: int
    slots: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of rows and slots."""
        return self.rows * self.width * BYTES_PER_ELEMENT * (1 + len(self.slots))

    def __str__(self) -> str:
        """Returns the arithmetic.

        >>> print(Need('video', 1000, 8, ('Adagrad',)))
        1,000 rows x width 8 x 4 bytes x (1 + 1 slot "Adagrad") = 64,000 bytes (62.5 KiB)
        """
        slots = f'{len(self.slots)} slot{"s" * (len(self.slots) != 1)}'
        if self.slots:
            slots += f' {quoted(self.slots)}'
        return (f'{self.rows:,} rows x width {self.width:,} x {BYTES_PER_ELEMENT} bytes x '
                f'(1 + {slots}) = {_shown(self.bytes)}')


def needs_of(plan: Plan) -> list[Need]:
    """Returns what each table of a plan needs; slots count if the plan trains."""
    return [Need(table.name, table.vocabulary_size, table.dimension,
                 tuple(slot.suffix for slot in plan.slots(table.name))) for table in plan.tables]


def require_fit(needs: Iterable[Need], memory: Memory, mapped: TableMemory | None = None) -> None:
    """Refuses tables that do not fit into memory.

    With `mapped` they take no more of it than that says.

    Raises:
      ConfigError: names each table that is too large by itself. If there is none, but all tables
        together are too large, it names the largest ones.
    """
    needs = list(needs)
    if mapped is not None and sum(need.bytes for need in needs) > mapped.bytes:
        problems = [] if mapped.bytes <= memory.bytes else [Problem(
            'E468', 'table_memory', f'resident must fit the memory of this process, '
            f'{_shown(memory.bytes)}, {memory.source}', _shown(mapped.bytes), 'Take less.')]
    else:
        problems = list(_problems(needs, memory))
    if problems:
        raise ConfigError(*problems)


def _problems(needs: list[Need], memory: Memory) -> Iterator[Problem]:
    most = f'{_shown(memory.bytes)}, {memory.source}'
    too_large = [need for need in needs if need.bytes > memory.bytes]
    for need in too_large:
        yield Problem('E462', f'table "{need.table}"',
                      f'rows and slots must fit the memory of this process, {most}', str(need),
                      _REMEDY)
    total = sum(need.bytes for need in needs)
    if too_large or total <= memory.bytes:
        return
    largest = sorted(needs, key=lambda need: need.bytes, reverse=True)[:_MOST_LISTED]
    yield Problem('E463', 'tables', 'rows and slots of all tables together must fit the memory of '
                  f'this process, {most}', f'{_shown(total)} for '
                  f'{len(needs)} tables, the largest of which are '
                  + '; '.join(f'"{need.table}": {need}' for need in largest),
                  _REMEDY)


def _shown(count: int) -> str:
    return f'{count:,} bytes ({bytes_text(count)})'
