"""The choice between compiled and stock kernels, and the number of their threads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..errors import ConfigError, Problem
from .specs import is_count

CHOICES = ('auto', 'native', 'stock')
MAX_THREADS = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Kernels:
    """A choice of kernels; each default leaves the decision to others.

    Attributes:
      choice: `'native'` for this package's compiled library, or `'stock'` for TensorFlow's own
        operations. `'auto'` takes the library if it was built, otherwise the stock operations.
      threads: of native kernels, in [1, 1024]; `None` takes one for each processor core that the
        process may use.
    """

    choice: str = 'auto'
    threads: int | None = None

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields each problem of the choice that was made at `where`."""
        if self.choice not in CHOICES:
            yield Problem('E474', where, f'kernels must be one of {", ".join(CHOICES)}',
                          repr(self.choice))
        if self.threads is not None and not is_count(self.threads, 1, MAX_THREADS):
            yield Problem('E475', where, f'kernel_threads must be in [1, {MAX_THREADS}]',
                          repr(self.threads), 'Leave it out to use all cores.')

    def or_else(self, other: Kernels) -> Kernels:
        """Returns this choice, with its open decisions taken from another one.

        >>> Kernels('auto', 2).or_else(Kernels('stock', 8))
        Kernels(choice='stock', threads=2)
        """
        return Kernels(other.choice if self.choice == 'auto' else self.choice,
                       other.threads if self.threads is None else self.threads)


def checked(kernels: Kernels, where: str) -> Kernels:
    """Returns the same choice.

    Raises:
      ConfigError: if it has a problem.
    """
    problems = list(kernels.problems(where))
    if problems:
        raise ConfigError(*problems)
    return kernels
