"""Computes the rows and bytes of tables on each host, and their share of the memory of a TPU."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.partition import STRATEGIES, Partition
from ..errors import Problem, bytes_text, quoted
from .config_view import TableView, View

GIB = 2**30
_MOST_NAMES = 5

_CHIPS = {
    # GiB of memory of a chip, and how many of the number in the name of a slice a chip counts
    # for: v2, v3, v4 and v5p count cores, of which a chip has two, v5e and v6e count chips.
    # As the Cloud TPU documentation has them, under system architecture.
    'v2': (16, 2), 'v3': (32, 2), 'v4': (32, 2), 'v5p': (95, 2), 'v5e': (16, 1),
    'v5litepod': (16, 1), 'v6e': (32, 1)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A TPU by name.

    Attributes:
      name: for example `'v3-32'`.
      chips: number of them.
      chip_bytes: memory of one.
    """

    name: str
    chips: int
    chip_bytes: int

    @property
    def bytes(self) -> int:
        """Memory of all chips."""
        return self.chips * self.chip_bytes

    def __str__(self) -> str:
        return f'{self.name} ({self.chips} chips x {self.chip_bytes // GIB} GiB)'


def slice_called(text: str) -> Slice:
    """Returns the TPU slice of a name, for argparse.

    Raises:
      argparse.ArgumentTypeError: if there is none.

    >>> str(slice_called('v3-32'))
    'v3-32 (16 chips x 32 GiB)'
    """
    match = re.fullmatch(r'(\w+)-(\d{1,5})', text.lower())
    gib, per_chip = _CHIPS.get(match[1], (0, 1)) if match else (0, 1)
    number = int(match[2]) if match else 0
    if not gib or number < 1 or number % per_chip:
        raise argparse.ArgumentTypeError(
            f'{text[:20]!r} is none of {", ".join(_CHIPS)} with "-" and the number of cores '
            '(of chips for v5e, v5litepod and v6e), such as v3-8')
    return Slice(name=text.lower(), chips=number // per_chip, chip_bytes=gib * GIB)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The range and the sum of one number per host.

    Attributes:
      least: of any host.
      most: of any host.
      total: of all hosts.
      hosts: number of hosts.
    """

    least: int
    most: int
    total: int
    hosts: int

    @property
    def imbalance(self) -> float:
        """Most over mean; 1 is even."""
        return self.most * self.hosts / self.total if self.total else 1.0

    def text(self, show: Callable[[int], str]) -> str:
        """Returns least, most and imbalance as text."""
        return f'{show(self.least)} to {show(self.most)}, max/mean {self.imbalance:.2f}'

    def data(self) -> dict[str, Any]:
        """Returns least, most and imbalance as data for JSON."""
        return {'min': self.least, 'max': self.most, 'imbalance': round(self.imbalance, 6)}


def rows_extent(table: TableView, hosts: int) -> Extent:
    """Returns the extent of the rows of one table. `div` and `mod` give hosts the same numbers of
    rows.
    """
    partition = _partition(table, hosts)
    return Extent(least=partition.rows_on(hosts - 1), most=partition.rows_on(0), hosts=hosts,
                  total=partition.vocabulary_size)


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


def extent(of_host: Sequence[int]) -> Extent:
    """Returns the extent of one number per host."""
    return Extent(least=min(of_host), most=max(of_host), total=sum(of_host), hosts=len(of_host))


def unknown_slots_text(view: View) -> list[str]:
    """Returns a line on the slots that are not counted, or no line."""
    names = view.slots_unknown
    if not names:
        return []
    more = f' and {len(names) - _MOST_NAMES} more' if len(names) > _MOST_NAMES else ''
    return [f'not counted: the slots of {quoted(names[:_MOST_NAMES])}{more}, which are not known']


def share_text(count: float, whole: float) -> str:
    """Returns `count` of `whole` in per cent.

    >>> share_text(1, 8), share_text(1, 100000), share_text(0, 8)
    ('12.5 %', '< 0.1 %', '0.0 %')
    """
    share = 100 * count / whole
    return '< 0.1 %' if 0 < share < .1 else f'{share:,.1f} %'


def memory_text(padded: Extent, tpu: Slice) -> str:
    """Returns a line on the fullest host: its tables' share of its part of the TPU memory."""
    part = tpu.bytes / padded.hosts
    who = 'all tables take' if padded.hosts == 1 else f'the fullest of {padded.hosts} hosts takes'
    return f'{tpu}: {who} {share_text(padded.most, part)} of its {bytes_text(part)}'


def memory_problems(padded: Extent, tpu: Slice | None) -> list[Problem]:
    """Returns W413 if the tables of the fullest host need more than its part of the memory."""
    if tpu is None or padded.most <= tpu.bytes / padded.hosts:
        return []
    return [Problem('W413', f'tables on {tpu.name}', 'rows and slots of a host must fit its part '
                    f'of the memory, {bytes_text(tpu.bytes / padded.hosts)}',
                    bytes_text(padded.most))]


def tpu_data(padded: Extent, tpu: Slice | None) -> dict[str, Any] | None:
    """Returns the fullest host's share of its part of the memory, as data for JSON."""
    return None if tpu is None else {
        'name': tpu.name, 'bytes': tpu.bytes,
        'share': round(padded.most * padded.hosts / tpu.bytes, 9)}
