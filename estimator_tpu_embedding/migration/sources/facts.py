"""What a job declares, in a form of neither API, and what somebody must know who reads it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.limits import MAX_NAME_LENGTH
from ...core.rates import DynamicRate
from ...core.specs import FeatureSpec, TableSpec, Topology
from ...errors import ConfigError, Problem, counted, quoted, shown
from ...proto.codec import Config

JOB = 'job'
"""The place of notes about the whole declaration."""


def place(kind: str, name: str) -> str:
    """Returns how notes call a table or a feature, such as `'table "video"'`."""
    return f'{kind} "{shown(name, MAX_NAME_LENGTH)}"'


def some(names: Sequence[str], noun: str = 'table', most: int = 3) -> str:
    """Returns the first of some names, and how many others there are.

    >>> some(['a', 'b', 'c', 'd'])
    'tables "a", "b", "c" and 1 other'
    """
    plural = '' if len(names) == 1 else 's'
    listed = f'{noun}{plural} {quoted(shown(name) for name in names[:most])}'
    rest = len(names) - most
    return f'{listed} and {counted(rest, "other")}' if rest > 0 else listed


def name_of(value: Any) -> str:
    """Returns where a function or the class of an object is defined, fit for a message.

    A `functools.partial` is called as its function.
    """
    while isinstance(value, functools.partial):
        value = value.func
    named = value if hasattr(value, '__qualname__') else type(value)
    return shown(f'{getattr(named, "__module__", "?")}.{named.__qualname__}', 200)


class Note(NamedTuple):
    """One thing that a maintainer must know of the new declaration.

    Attributes:
      where: the table or feature, as of `place`; `JOB` for the whole declaration.
      fact: the difference, or the gap.
      remedy: what to do; may be empty.
      code: of the error that it is with `--strict`; `''` for a mere remark.
    """

    where: str
    fact: str
    remedy: str = ''
    code: str = ''

    @property
    def problem(self) -> Problem:
        """The same as the problem of an error."""
        return Problem(self.code, self.where, self.fact, remedy=self.remedy)

    def __str__(self) -> str:
        """Returns the sentences of a comment, which stands beside the table or feature."""
        text = f'{self.fact[0].upper()}{self.fact[1:]}'
        return f'{text}{"" if text.endswith((".", "?")) else "."} {self.remedy}'.rstrip()


LOST = functools.partial(Note, code='E671')
"""The note of something that the target cannot say."""
NO_OPTIMIZER = functools.partial(Note, code='E672')
NOT_WRITABLE = functools.partial(Note, code='E673')
"""The note of a function or an object of a program."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table.

    Attributes:
      spec: its size, and its optimizer, whose learning rate is the table's. If the rate is a
        function, `spec.rate` holds it, and the rate of the optimizer is 0.0. Without an
        optimizer the table is not trained, or `algorithm` says by what.
      algorithm: name of the optimizer's field in the proto, also of one that this package cannot
        decode; `''` for a table that is not trained.
      is_whole: whether the combiner, the initializer and the first values of slots are known.
        Configs do not hold them.
      packed: whether the hardware packs narrow rows.
    """

    spec: TableSpec
    algorithm: str
    is_whole: bool = True
    packed: bool = False

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.spec.name

    @property
    def dynamic(self) -> DynamicRate | None:
        """The rate, if it is a function."""
        return self.spec.rate if isinstance(self.spec.rate, DynamicRate) else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One feature.

    Attributes:
      spec: its name is the key of the feature in the new declaration.
      declared_name: the name that the job gave to it; `''` if it is not known.
      validate: whether look-ups on a CPU drop ids and weights that are not positive.
    """

    spec: FeatureSpec
    declared_name: str = ''
    validate: bool = True


class Sizes(NamedTuple):
    """Samples per core and step, hosts, and cores of all hosts, as far as they are known."""

    batch_size_per_core: int | None = None
    hosts: int | None = None
    cores: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """All that a job declares.

    Attributes:
      where: its place, fit for a message.
      origin: `'TF1'`, `'TF2'`, or `'config'` for a proto, which both write.
      tables: in any order.
      features: in any order; each has its table in `tables`.
      sizes: of the system and the batch.
      pipelined: whether look-ups run one step ahead of updates.
      strategy: `'div'` or `'mod'`.
      profile_directory: for statistics of ids; `''` for none.
      multiplier: name of the function that multiplies gradients; `''` for none.
      notes: of what was read: facts that no target can say.
      config: the config that the job gives to the hardware, if it is known.
    """

    where: str
    origin: str
    tables: tuple[Table, ...]
    features: tuple[Feature, ...]
    sizes: Sizes = Sizes()
    pipelined: bool = False
    strategy: str = 'div'
    profile_directory: str = ''
    multiplier: str = ''
    notes: tuple[Note, ...] = ()
    config: Config | None = None

    def sized(self, batch_size: int, topology: Topology) -> Declaration:
        """Returns the declaration with sizes that it lacks.

        Args:
          batch_size: samples of all cores per step.
          topology: the hosts and cores.

        Raises:
          ConfigError: if the job states its own sizes, or the cores do not divide the batch.
        """
        if self.sizes != Sizes():
            raise ConfigError(Problem(
                'E679', self.where, 'it states its batch size and its system itself, which '
                'arguments cannot change', f'--batch-size {batch_size}', 'Leave it out.'))
        problems = list(topology.problems())
        problem = None if problems else topology.batch_problem('--batch-size', batch_size)
        if problem is not None:
            problems.append(problem)
        if problems:
            raise ConfigError(*problems)
        return dataclasses.replace(self, sizes=Sizes(
            batch_size // topology.num_cores, topology.num_hosts, topology.num_cores))
