"""Maps each id to its host and row: the only arithmetic of the strategies `div` and `mod`.

`div` gives each host a contiguous range of ids; `mod` deals them out like cards. Both give
the first `vocabulary_size % num_hosts` hosts one row more than the others. 13 ids on 5 hosts:

    div   [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10], [11, 12]]
    mod   [[0, 5, 10], [1, 6, 11], [2, 7, 12], [3, 8], [4, 9]]

(the example of TensorFlow's `tpu_embedding_configuration.proto`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Tools that read configs start without NumPy, which takes 0.1 s to import.
    import numpy as np

STRATEGIES = ('div', 'mod')
STORED_BY_ID = ('div',)
"""Strategies whose rows a checkpoint holds in the order of ids, on any number of hosts."""
REMAINDERS = 3840
"""Ids are counted by their remainder of a division by this number.

So `spread` is exact for `mod` if the number of hosts divides it. These are the powers of two up
to 256, times 1, 3, 5 or 15.
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The map between ids and rows for one table.

    Attributes:
      strategy: `'div'` or `'mod'`.
      vocabulary_size: number of ids, >= 1.
      num_hosts: number of hosts, >= 1. Hosts beyond the vocabulary hold no rows.

    >>> import numpy as np
    >>> p = Partition(strategy='mod', vocabulary_size=22, num_hosts=4)
    >>> hosts, rows = p.locate(np.array([13, 7]), np.maximum)
    >>> hosts.tolist(), rows.tolist(), p.stored_row(np.array([13])).tolist()
    ([1, 3], [3, 1], [9])
    """

    strategy: str
    vocabulary_size: int
    num_hosts: int

    @classmethod
    def by_id(cls, rows: int) -> Partition:
        """Returns the partition of one shard, whose stored row `i` belongs to id `i`."""
        return cls(strategy=STORED_BY_ID[0], vocabulary_size=rows, num_hosts=1)

    @property
    def fuller_hosts(self) -> int:
        """The number of hosts with one row more than the others; they are the first ones."""
        return self.vocabulary_size % self.num_hosts

    def rows_on(self, host: int) -> int:
        """Returns the number of rows that `host` holds."""
        return self.vocabulary_size // self.num_hosts + (1 if host < self.fuller_hosts else 0)

    def offset_of(self, host: int) -> int:
        """Returns the stored row at which the rows of `host` begin in a checkpoint tensor."""
        quotient, rest = divmod(self.vocabulary_size, self.num_hosts)
        return host * quotient + min(host, rest)

    @property
    def stores_by_id(self) -> bool:
        """Whether a checkpoint tensor holds the rows in the order of ids.

        >>> [Partition(strategy='mod', vocabulary_size=5, num_hosts=hosts).stores_by_id
        ...  for hosts in (1, 2)]
        [True, False]
        """
        return self.strategy in STORED_BY_ID or min(self.num_hosts, self.vocabulary_size) == 1

    def ids_on(self, host: int) -> np.ndarray:
        """Returns the ids that `host` holds, in row order: int64 `[rows_on(host)]`."""
        import numpy as np
        return np.arange(self.rows_on(host), dtype=np.int64) * self.stride + self.first_id(host)

    def first_id(self, host: int) -> int:
        """Returns the id of the first row of `host`; the id of its row `r` is `stride * r` more.

        >>> p = Partition(strategy='mod', vocabulary_size=22, num_hosts=4)
        >>> p.first_id(1) + p.stride * 3
        13
        """
        return host if self.strategy == 'mod' else self.offset_of(host)

    @property
    def stride(self) -> int:
        """The difference of the ids of neighbouring rows on one host."""
        return self.num_hosts if self.strategy == 'mod' else 1

    def hosts_of_newest(self, count: int) -> int:
        """Returns how many hosts share the `count` highest ids, `1 <= count <= vocabulary_size`.

        >>> [Partition(strategy=strategy, vocabulary_size=22, num_hosts=4).hosts_of_newest(3)
        ...  for strategy in STRATEGIES]
        [1, 3]
        """
        if self.strategy == 'mod':
            return min(count, self.num_hosts)
        first, last = (self.locate(id, max)[0] for id in (
            self.vocabulary_size - count, self.vocabulary_size - 1))
        return int(last - first + 1)

    def spread(self, ranges: Sequence[int], remainders: Sequence[int]) -> tuple[list[float], int]:
        """Estimates how many ids each host holds, from counts of the ids.

        Args:
          ranges: the number of ids in each of `R` equal ranges of the `V` rows. Id `i` is in
            range `i * R // V`.
          remainders: the number of ids with each remainder of a division by `REMAINDERS`.

        Returns:
          `(load, uncertain)`. `load` has the expected number of ids of each host. If several
          hosts share a range or remainder, its ids are taken to be spread evenly, and
          `uncertain` counts them. No load is wrong by more than `uncertain`.

        >>> Partition(strategy='div', vocabulary_size=8, num_hosts=2).spread([6, 3, 1], [])
        ([7.0, 3.0], 3)
        """
        hosts = range(self.num_hosts)
        if self.strategy == 'mod':
            classes = math.gcd(self.num_hosts, REMAINDERS)
            counts = [sum(remainders[rest::classes]) for rest in range(classes)]
            load = [counts[host % classes] * classes / self.num_hosts for host in hosts]
            return load, 0 if classes == self.num_hosts else sum(counts)
        load, uncertain = [0.0] * self.num_hosts, 0
        for number, count in enumerate(ranges):
            start, end = (-(-at * self.vocabulary_size // len(ranges))
                          for at in (number, number + 1))
            first, last = (self.locate(id, max)[0] for id in (start, end - 1))
            uncertain += count if first != last else 0
            for host in range(first, last + 1) if count else ():
                begin = self.offset_of(host)
                part = min(end, begin + self.rows_on(host)) - max(start, begin)
                load[host] += count * part / (end - start)
        return load, uncertain

    def locate(self, ids: Any, maximum: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        """Returns the hosts and rows where ids live, shaped and typed as `ids`.

        It uses only `+ - * // %` and `maximum`, element-wise, so it takes NumPy arrays and tensors.
        """
        if self.strategy == 'mod':
            return ids % self.num_hosts, ids // self.num_hosts
        quotient, rest = divmod(self.vocabulary_size, self.num_hosts)
        if quotient == 0:
            return ids, ids - ids
        hosts = maximum(ids // (quotient + 1), (ids - rest) // quotient)
        # The smaller one of `hosts` and `rest`, which have no `minimum` in common.
        fuller_before = hosts + rest - maximum(hosts, rest)
        return hosts, ids - (hosts * quotient + fuller_before)

    def stored_row(self, ids: np.ndarray) -> np.ndarray:
        """Returns the row of each id in a checkpoint tensor, which holds host after host.

        For `div` this is the id itself. For `mod` it depends on the number of hosts, so a `mod`
        checkpoint means nothing without its manifest.
        """
        import numpy as np
        hosts, rows = self.locate(np.asarray(ids, dtype=np.int64), np.maximum)
        offsets = np.array([self.offset_of(host) for host in range(self.num_hosts)],
                           dtype=np.int64)
        return np.asarray(offsets[hosts] + rows)

    def ids_of_stored_rows(self, first: int, stop: int) -> np.ndarray:
        """Returns the ids of the stored rows in `[first, stop)`: int64 `[stop - first]`.

        It is the inverse of `stored_row`.

        >>> Partition(strategy='mod', vocabulary_size=22, num_hosts=4).ids_of_stored_rows(5, 10)
        array([20,  1,  5,  9, 13])
        """
        import numpy as np
        stored = np.arange(first, stop, dtype=np.int64)
        if self.strategy in STORED_BY_ID:
            return stored
        # Each host holds as many rows under either strategy, so div finds the host.
        hosts, rows = dataclasses.replace(self, strategy='div').locate(stored, np.maximum)
        return np.asarray(rows * self.num_hosts + hosts)
