"""Declarations of a user: tables, features, topology and kernels.

`plan.resolve` checks those of tables, features and topology together.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import Problem, counted
from . import limits
from .names import name_problems
from .optimizers import Optimizer, Rate, is_number
from .table_memory import TableMemory

COMBINERS = ('sum', 'mean', 'sqrtn', None)
ID_POLICIES = ('error', 'drop', 'clip', 'mod')
BACKENDS = ('emulated', 'tpu')
KERNELS = ('auto', 'native', 'stock')
MAX_THREADS = 1024


def is_count(value: object, lowest: int, highest: int) -> bool:
    """Whether `value` is a whole number (no bool) in `[lowest, highest]`."""
    return (isinstance(value, numbers.Integral) and not isinstance(value, bool)
            and lowest <= int(value) <= highest)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """Rounding of the rows that a look-up combines; stored rows keep their values.

    A value is raised to `lower` if it is less, then lowered to `upper` if it is more. Then it is
    rounded to the nearest `lower + k * step`, one of `num_buckets` values. Gradients pass as if
    nothing were rounded.
    """

    num_buckets: int
    lower: float
    upper: float

    @property
    def step(self) -> float:
        """The distance between neighbouring values."""
        return (self.upper - self.lower) / (self.num_buckets - 1)

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields each problem of the rounding of the table called `where`."""
        if not is_count(self.num_buckets, 2, limits.MAX_BUCKETS):
            yield Problem('E417', where, f'num_buckets is {self.num_buckets}, must be at least 2 '
                          f'for simulated quantization, and at most {limits.MAX_BUCKETS}')
        for name, bound in (('lower', self.lower), ('upper', self.upper)):
            if not is_number(bound) or abs(bound) > limits.MAX_QUANTIZED:
                yield Problem('E417', where, f'{name} of its quantization must be a number of '
                              f'magnitude <= {limits.MAX_QUANTIZED:g}', repr(bound))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A named matrix of rows, with its optimizer.

    Attributes:
      vocabulary_size: number of rows; ids are in `[0, vocabulary_size)`.
      dimension: width of a row.
      combiner: how the rows of one sample become one; `None` for features with one id per sample.
      initializer: takes the shape of the rows of one host, `dtype`, and `partition_info` if its
        signature has that; returns the initial values.
      optimizer: how the table is trained; `None` takes the plan's.
      rate: a learning rate that takes precedence over the optimizer's; `None` takes the latter.
      hot_id_replication: whether the hardware keeps copies of frequent rows; changes no number.
      quantization: rounding of rows that are looked up; `None` rounds nothing.
    """

    name: str
    vocabulary_size: int
    dimension: int
    combiner: str | None = 'mean'
    initializer: Callable[..., Any] | None = dataclasses.field(default=None, compare=False)
    optimizer: Optimizer | None = None
    rate: Rate | None = None
    hot_id_replication: bool = False
    quantization: Quantization | None = None

    def problems(self) -> Iterator[Problem]:
        """Yields each problem of this table alone."""
        where = f'table "{self.name}"'
        yield from name_problems('table', self.name)
        if not is_count(self.vocabulary_size, 1, limits.MAX_VOCABULARY_SIZE):
            yield Problem('E412', where,
                          f'vocabulary_size must be in [1, {limits.MAX_VOCABULARY_SIZE}]',
                          repr(self.vocabulary_size), 'Set it to the largest id + 1.')
        if not is_count(self.dimension, 1, limits.MAX_DIMENSION):
            yield Problem('E413', where, f'dimension must be in [1, {limits.MAX_DIMENSION}]',
                          repr(self.dimension))
        if self.combiner not in COMBINERS:
            yield Problem('E414', where, 'combiner must be "mean", "sum", "sqrtn" or None',
                          repr(self.combiner))
        if self.initializer is not None and not callable(self.initializer):
            yield Problem('E415', where, 'initializer must be callable', repr(self.initializer),
                          'Pass an instance such as tf.truncated_normal_initializer().')
        if self.optimizer is not None:
            yield from self.optimizer.problems(where)
        if self.rate is not None:
            yield from self.rate.problems(where)
        if self.quantization is not None:
            yield from self.quantization.problems(where)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSpec:
    """A named stream of ids into one table.

    Attributes:
      name: the key of the feature in what `input_fn` returns.
      table: the name of its table.
      max_sequence_length: 0 for a feature whose ids of one sample are combined. Above 0 it is
        the number of places of a sequence: each id has an activation of its own there.
        Shorter sequences are padded, longer ones are cut.
      weight_feature: the key of the feature that holds the weights of the ids, or `None`.
      output_shape: shape of the activation on one core, without the width. If it is `None`, the
        shape is the batch size, followed by the sequence length if there is one.
      id_policy: what happens to an id outside of `[0, vocabulary_size)`. `'error'` ends the run,
        `'drop'` leaves the id out, `'clip'` takes the nearest id, and `'mod'` the remainder of a
        division by the vocabulary size. All but `'error'` count such ids.
    """

    name: str
    table: str
    max_sequence_length: int = 0
    weight_feature: str | None = None
    output_shape: tuple[int, ...] | None = None
    id_policy: str = 'error'

    def problems(self) -> Iterator[Problem]:
        """Yields each problem of this feature alone."""
        yield from name_problems('feature', self.name)
        if not is_count(self.max_sequence_length, 0, limits.MAX_VOCABULARY_SIZE):
            yield Problem('E432', f'feature "{self.name}"',
                          'max_sequence_length must be zero or a positive int',
                          repr(self.max_sequence_length))
        if self.output_shape is not None and not all(
                is_count(size, 1, limits.MAX_VOCABULARY_SIZE) for size in self.output_shape):
            yield Problem('E433', f'feature "{self.name}"', 'every dimension of its output_shape '
                          'must be a positive int', repr(self.output_shape))
        if self.id_policy not in ID_POLICIES:
            yield Problem('E438', f'feature "{self.name}"', 'the policy for ids out of range must '
                          f'be one of {", ".join(ID_POLICIES)}', repr(self.id_policy))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The number of hosts, which hold shards and run input, and of cores that each host feeds.

    >>> str(Topology(num_hosts=2, cores_per_host=4))
    '2 hosts x 4 cores'
    """

    num_hosts: int = 1
    cores_per_host: int = 1

    @property
    def num_cores(self) -> int:
        """The number of cores of all hosts, which are the replicas of the model."""
        return self.num_hosts * self.cores_per_host

    def cores_of(self, host: int) -> range:
        """Returns the cores that `host` feeds; cores are numbered host by host."""
        return range(host * self.cores_per_host, (host + 1) * self.cores_per_host)

    def batch_arithmetic(self, batch_size: int) -> str:
        """Returns how a global batch splits: `global 512 = 2 hosts x 4 cores x 64`."""
        return f'global {batch_size} = {self} x {batch_size // self.num_cores}'

    def batch_problem(self, name: str, batch_size: object) -> Problem | None:
        """Returns the problem of a global batch size on this topology, or `None`.

        `name` is how the original's messages begin: `'train batch size'`.
        """
        where = name.replace(' ', '_')
        if not is_count(batch_size, 1, 2**62):
            return Problem('E411', where, 'it must be a positive int', repr(batch_size))
        assert isinstance(batch_size, numbers.Integral)
        rest = int(batch_size) % self.num_cores
        if not rest:
            return None
        below = int(batch_size) - rest
        sizes = [size for size in (below, below + self.num_cores) if size]
        return Problem(
            'E411', where, f'{name} {batch_size} must be divisible by number of replicas '
            f'{self.num_cores}', f'{batch_size} over {self}',
            f'Use {" or ".join(map(str, sizes))}.')

    def problems(self) -> Iterator[Problem]:
        """Yields each problem of this topology."""
        for name, value, highest in (
                ('hosts', self.num_hosts, limits.MAX_HOSTS),
                ('cores per host', self.cores_per_host, limits.MAX_CORES_PER_HOST)):
            if not is_count(value, 1, highest):
                yield Problem('E410', 'topology',
                              f'the number of {name} must be in [1, {highest}]', repr(value))

    def __str__(self) -> str:
        return f'{counted(self.num_hosts, "host")} x {counted(self.cores_per_host, "core")}'


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """An emulated system, and whether somebody asked for its size.

    If not, `TPUConfig.num_shards` may set it.
    """

    topology: Topology = Topology()
    is_explicit: bool = False

    @classmethod
    def sized(cls, hosts: int | None, cores: int | None) -> System:
        """Returns the system of a stated size, unchecked; one that nobody states is 1.

        >>> System.sized(2, None)
        System(topology=Topology(num_hosts=2, cores_per_host=1), is_explicit=True)
        """
        return cls(Topology(num_hosts=1 if hosts is None else hosts,
                            cores_per_host=1 if cores is None else cores),
                   is_explicit=hosts is not None or cores is not None)


@dataclasses.dataclass(frozen=True, slots=True)
class Kernels:
    """A choice of kernels; each default leaves the decision to others.

    Attributes:
      choice: `'native'` for this package's compiled library, or `'stock'` for TensorFlow's own
        operations. `'auto'` takes the library if it was built, otherwise the stock operations.
      threads: of native kernels; `None` takes one for each processor core that the process may use.
      memory: where native kernels have large tables; `None` has all of them in memory.
    """

    choice: str = 'auto'
    threads: int | None = None
    memory: TableMemory | None = None

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields each problem of the choice that was made at `where`."""
        if self.choice not in KERNELS:
            yield Problem('E474', where, f'kernels must be one of {", ".join(KERNELS)}',
                          repr(self.choice))
        if self.threads is not None and not is_count(self.threads, 1, MAX_THREADS):
            yield Problem('E475', where, f'kernel_threads must be in [1, {MAX_THREADS}]',
                          repr(self.threads), 'Leave it out to use all cores.')
        if self.memory is not None:
            yield from self.memory.problems(where)
            if self.choice == 'stock':
                yield self.problem_of_memory(where, "kernels='stock'")

    def problem_of_memory(self, where: str, reason: str) -> Problem:
        """Returns the problem that stock kernels would have their tables on a disk."""
        return Problem('E468', where, 'only native kernels have tables on a disk', reason,
                       'Leave table_memory out, or take the native kernels.')

    def or_else(self, other: Kernels) -> Kernels:
        """Returns this choice, with its open decisions taken from another one.

        >>> Kernels('auto', 2).or_else(Kernels('stock', 8))
        Kernels(choice='stock', threads=2, memory=None)
        """
        return Kernels(other.choice if self.choice == 'auto' else self.choice,
                       other.threads if self.threads is None else self.threads,
                       other.memory if self.memory is None else self.memory)
