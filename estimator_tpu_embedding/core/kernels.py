"""Which kernels execute a plan, and on how many threads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..errors import ConfigError, Problem
from .specs import is_count

CHOICES = ('auto', 'native', 'stock')
MAX_THREADS = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Kernels:
    """What someone says about the kernels; the defaults are those of one who says nothing.

    Attributes:
      choice: `'native'` is this package's compiled library, `'stock'` TensorFlow's own operations;
        `'auto'` is the library where it was built, else the other.
      threads: of native kernels, in [1, 1024]; by `None` as many as there are cores that the
        process may use.
    """

    choice: str = 'auto'
    threads: int | None = None

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields what is wrong with what was said at `where`."""
        if self.choice not in CHOICES:
            yield Problem('E474', where, f'kernels must be one of {", ".join(CHOICES)}',
                          repr(self.choice))
        if self.threads is not None and not is_count(self.threads, 1, MAX_THREADS):
            yield Problem('E475', where, f'kernel_threads must be in [1, {MAX_THREADS}]',
                          repr(self.threads), 'Leave it out to use all cores.')

    def or_else(self, other: Kernels) -> Kernels:
        """The same, with what it leaves open as another has it.

        >>> Kernels('auto', 2).or_else(Kernels('stock', 8))
        Kernels(choice='stock', threads=2)
        """
        return Kernels(other.choice if self.choice == 'auto' else self.choice,
                       other.threads if self.threads is None else self.threads)


def checked(kernels: Kernels, where: str) -> Kernels:
    """The same; raises ConfigError if something is wrong with it."""
    problems = list(kernels.problems(where))
    if problems:
        raise ConfigError(*problems)
    return kernels
