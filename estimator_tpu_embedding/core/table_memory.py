"""Declares memory of tables on a local disk, for tables that are larger than the machine's memory.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from ..errors import Problem

_UNITS = {'': 1, 'B': 1, 'KiB': 2**10, 'MiB': 2**20, 'GiB': 2**30, 'TiB': 2**40}
_REMEDY = 'Write a number of bytes, or one with KiB, MiB, GiB or TiB, such as 16GiB.'
_MOST = 2**62


@dataclasses.dataclass(frozen=True, slots=True)
class TableMemory:
    """Lets large tables be in files on a local disk, of which the system keeps what is used often.

    If all tables of a process fit into `resident` bytes with their slots, they are in memory as
    always. Otherwise the largest tables are mapped from files, so many that the others fit into
    half of `resident`. The numbers are the same, bit for bit.

    Attributes:
      directory: the absolute path of a directory on a local disk, such as `'/ssd/tables'`; on
        each worker if hosts are workers. Files in it have no names and vanish with the process.
      resident: the bytes of memory for the tables of a process: an int, or a text such as
        `'16GiB'` or `'1.5TiB'`; > 0.

    >>> TableMemory('/ssd/tables', '16GiB').bytes
    17179869184
    """

    directory: str
    resident: int | str

    @property
    def bytes(self) -> int:
        """The bytes of memory; 0 if `problems` has one with `resident`."""
        if isinstance(self.resident, str):
            found = re.fullmatch(r'\s*(\d{1,18}(?:\.\d{1,9})?)\s*([KMGT]iB|B|)\s*', self.resident)
            count = int(float(found[1]) * _UNITS[found[2]]) if found else 0
        else:
            count = self.resident if type(self.resident) is int else 0
        return count if 0 < count <= _MOST else 0

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields each problem of the choice that was made at `where`."""
        if not isinstance(self.directory, str) or not self.directory.startswith('/'):
            yield Problem('E468', where, 'the directory of tables must be an absolute path',
                          repr(self.directory), 'Take a directory on an SSD of this machine.')
        if not self.bytes:
            yield Problem('E468', where, 'resident must be a number of bytes above 0',
                          repr(self.resident), _REMEDY)
