"""Resolves specs into a frozen Plan, or reports every rule that they break together."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import ConfigError, Problem, counted, did_you_mean, quoted
from . import limits
from .learning_rates import ConstantRate, Rate
from .optimizers import Optimizer, SlotSpec
from .partition import STRATEGIES, Partition
from .specs import FeatureSpec, TableSpec, Topology

MODES = ('training', 'inference')
BYTES_PER_ELEMENT = 4


class Owned(NamedTuple):
    """Which rows of a larger plan the plan of one host has: the host, and partitions by table."""

    host: int
    partitions: dict[str, Partition]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The tables, features and settings of a run. Only `resolve` makes it, so every rule holds.

    Attributes:
      tables: sorted by name; each has an optimizer if `mode` is `'training'`.
      features: sorted by table, then by name: the order of activations and gradients everywhere.
      topology: hosts and cores.
      strategy: `'div'` or `'mod'`, see `core/partition.py`.
      batch_size_per_core: samples per core and step.
      mode: `'training'` or `'inference'`.
      pipelined: whether look-ups run one step ahead of updates.
      profile_directory: directory for statistics of the ids of a training; `''` writes none.
      owned: says which ids the rows have, in the plan of one host of a larger one; otherwise
        `None`, and row `i` of a table has id `i`.
    """

    tables: tuple[TableSpec, ...]
    features: tuple[FeatureSpec, ...]
    topology: Topology
    strategy: str
    batch_size_per_core: int
    mode: str
    pipelined: bool
    profile_directory: str
    owned: Owned | None = None
    _index_of: dict[str, int] = dataclasses.field(init=False, compare=False, repr=False)
    _features_of: dict[str, list[FeatureSpec]] = dataclasses.field(
        init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        of_table: dict[str, list[FeatureSpec]] = {table.name: [] for table in self.tables}
        for feature in self.features:
            of_table[feature.table].append(feature)
        object.__setattr__(self, '_features_of', of_table)
        object.__setattr__(self, '_index_of', {name: index for index, name in enumerate(of_table)})

    def table(self, name: str) -> TableSpec:
        """Returns the table called `name`."""
        return self.tables[self.table_index(name)]

    def table_index(self, name: str) -> int:
        """Returns the position of a table in `tables`, which is its `table_id` in the proto."""
        return self._index_of[name]

    def features_of(self, table: str) -> Sequence[FeatureSpec]:
        """Returns the features that look up in `table`."""
        return self._features_of[table]

    def output_shape(self, feature: FeatureSpec) -> tuple[int, ...]:
        """Returns the shape of an activation on one core, for example `[B, D]` or `[B, L, D]`."""
        shape = feature.output_shape
        if shape is None:
            length = (feature.max_sequence_length,) if feature.max_sequence_length else ()
            shape = (self.batch_size_per_core, *length)
        return (*shape, self.table(feature.table).dimension)

    def num_samples(self, feature: FeatureSpec) -> int:
        """Returns how many rows an activation has on one core; places of sequences count."""
        return math.prod(self.output_shape(feature)[:-1])

    def partition(self, table: str) -> Partition:
        """Returns the map between the ids and the rows of `table`."""
        return Partition(strategy=self.strategy, num_hosts=self.topology.num_hosts,
                         vocabulary_size=self.table(table).vocabulary_size)

    def ids_of_rows(self, table: str) -> tuple[int, int]:
        """Returns `(first, stride)`: in the plan of an owner row `r` has id `first + stride * r`.

        Elsewhere an id is what `partition` maps, so this is `(0, 1)`.
        """
        if self.owned is None:
            return 0, 1
        partition = self.owned.partitions[table]
        return partition.first_id(self.owned.host), partition.stride

    def plans_of_owners(self) -> dict[int, Plan]:
        """Returns for each host that holds rows its rows as a plan of their own.

        That plan has one host and all cores. An id of it is a row of this plan's host. Every table
        has the combiner sum. Its features are in exchange order, see `hosts/per_host.py`.
        """
        return {host: self._plan_of_owner(host) for host in range(self.topology.num_hosts)
                if any(self.partition(table.name).rows_on(host) for table in self.tables)}

    def _plan_of_owner(self, host: int) -> Plan:
        kept = [table for table in self.tables if self.partition(table.name).rows_on(host)]
        features = [dataclasses.replace(
            feature, output_shape=(self.num_samples(feature),), max_sequence_length=0)
            for feature in self.features_by_width()
            if self.partition(feature.table).rows_on(host)]
        return dataclasses.replace(
            self, tables=tuple(dataclasses.replace(
                table, vocabulary_size=self.partition(table.name).rows_on(host), combiner='sum')
                for table in kept),
            features=tuple(features),
            topology=Topology(num_hosts=1, cores_per_host=self.topology.num_cores),
            owned=Owned(host, {table.name: self.partition(table.name) for table in kept}))

    def features_by_width(self) -> list[FeatureSpec]:
        """Returns the features sorted by the width of their rows, otherwise in their order."""
        return sorted(self.features, key=lambda feature: self.table(feature.table).dimension)

    def rate(self, table: str) -> Rate:
        """Returns the learning rate of `table`: its own, otherwise its optimizer's."""
        spec = self.table(table)
        if spec.rate is not None:
            return spec.rate
        assert spec.optimizer is not None, 'a plan for inference has no rates'
        return ConstantRate(value=spec.optimizer.learning_rate)

    def slots(self, table: str) -> tuple[SlotSpec, ...]:
        """Returns the slots of `table`; inference keeps none."""
        optimizer = self.table(table).optimizer
        return optimizer.slots if optimizer is not None and self.mode == 'training' else ()

    def bytes_per_host(self, host: int) -> int:
        """Returns the bytes of rows and slots on `host`."""
        return sum(self.partition(table.name).rows_on(host) * table.dimension * BYTES_PER_ELEMENT
                   * (1 + len(self.slots(table.name))) for table in self.tables)

    @property
    def global_batch_size(self) -> int:
        """Samples of all cores per step."""
        return self.batch_size_per_core * self.topology.num_cores

    def __str__(self) -> str:
        """Returns a text with one line per table."""
        lines = [f'{self.mode}, {self.topology.batch_arithmetic(self.global_batch_size)}, '
                 f'{self.strategy}, {"pipelined" if self.pipelined else "not pipelined"}']
        hosts = range(self.topology.num_hosts)
        for table in self.tables:
            partition = self.partition(table.name)
            trained = table.optimizer.field if table.optimizer is not None else 'not trained'
            slots = counted(len(self.slots(table.name)), 'slot')
            lines.append(
                f'  table {table.name}: {table.vocabulary_size} x {table.dimension}, '
                f'{table.combiner}, {trained}, {slots}, rows per host '
                f'{[partition.rows_on(host) for host in hosts]}, features '
                f'{quoted(feature.name for feature in self.features_of(table.name))}')
        lines.append(f'  bytes per host {[self.bytes_per_host(host) for host in hosts]}')
        return '\n'.join(lines)


def resolve(tables: Sequence[TableSpec], features: Sequence[FeatureSpec], topology: Topology, *,
            batch_size: int, optimizer: Optimizer | None = None, strategy: str = 'div',
            mode: str = 'training', pipelined: bool = False, profile_directory: str = '',
            may_be_empty: bool = False) -> Plan:
    """Turns declarations, in any order, into a plan, or reports every problem that they have.

    Args:
      batch_size: samples of all cores per step; the cores must divide it.
      optimizer: for tables without their own; inference needs none.
      pipelined: see `Plan`, as for all others.
      may_be_empty: whether a plan without tables and features is legal; its engine has nothing
        to do.

    Raises:
      ConfigError: with all problems.

    >>> plan = resolve([TableSpec(name='video', vocabulary_size=22, dimension=4)],
    ...                [FeatureSpec(name='watched', table='video')],
    ...                Topology(num_hosts=4, cores_per_host=2), batch_size=16, mode='inference')
    >>> plan.batch_size_per_core, plan.output_shape(plan.features[0])
    (2, (2, 4))
    """
    problems = problems_of(tables, features, topology, batch_size=batch_size,
                           optimizer=optimizer, strategy=strategy, mode=mode)
    if may_be_empty and not tables and not features:
        problems = [problem for problem in problems if problem.code != 'E402']
    if problems:
        raise ConfigError(*problems)
    ordered = sorted((dataclasses.replace(table, optimizer=table.optimizer or optimizer)
                      for table in tables), key=lambda table: table.name)
    return Plan(
        tables=tuple(ordered), features=tuple(
            sorted(features, key=lambda feature: (feature.table, feature.name))),
        topology=topology, strategy=strategy, mode=mode, pipelined=pipelined,
        profile_directory=profile_directory, batch_size_per_core=batch_size // topology.num_cores)


def problems_of(tables: Sequence[TableSpec], features: Sequence[FeatureSpec], topology: Topology,
                *, batch_size: int, optimizer: Optimizer | None, strategy: str, mode: str
                ) -> list[Problem]:
    """Returns every problem of declarations; takes the arguments of `resolve`."""
    return [*itertools.chain(*(table.problems() for table in tables),
                             *(feature.problems() for feature in features), topology.problems()),
            *(optimizer.problems('optimization_parameters') if optimizer is not None else ()),
            *_problems_of_names(tables, features),
            *_problems_of_run(tables, topology, batch_size, optimizer, strategy, mode)]


def _problems_of_names(tables: Sequence[TableSpec],
                       features: Sequence[FeatureSpec]) -> Iterator[Problem]:
    table_names = {table.name for table in tables}
    for kind, names, most in (
            ('table', [table.name for table in tables], limits.MAX_TABLES),
            ('feature', [feature.name for feature in features], limits.MAX_FEATURES)):
        for name, count in collections.Counter(names).items():
            if count > 1:
                yield Problem('E404', f'{kind} "{name}"', f'the name of a {kind} must be unique',
                              f'{count} of that name')
        if not names:
            yield Problem('E402', 'plan', f'at least one {kind} is needed', 'none')
        if len(names) > most:
            yield Problem('E405', 'plan', f'at most {most} {kind}s are allowed', str(len(names)))
    used = {feature.table for feature in features}
    for name in sorted(table_names - used):
        yield Problem('E430', f'table "{name}"', 'a table needs at least one feature', 'none')
    for feature in features:
        if feature.table not in table_names:
            yield Problem('E431', f'feature "{feature.name}"',
                          f'table "{feature.table}" is not defined; '
                          f'tables: {quoted(sorted(table_names)[:20])}',
                          remedy=did_you_mean(feature.table, table_names))


def _problems_of_run(tables: Sequence[TableSpec], topology: Topology, batch_size: int,
                     optimizer: Optimizer | None, strategy: str, mode: str) -> Iterator[Problem]:
    if strategy not in STRATEGIES:
        yield Problem('E440', 'partition_strategy', 'it must be "div" or "mod"', repr(strategy))
    if mode not in MODES:
        yield Problem('E441', 'mode', 'it must be "training" or "inference"', repr(mode))
    if not list(topology.problems()):
        problem = topology.batch_problem('batch size', batch_size)
        if problem is not None:
            yield problem
    if mode == 'training' and optimizer is None:
        for table in tables:
            if table.optimizer is None:
                yield Problem('E442', f'table "{table.name}"',
                              'training needs an optimizer', 'none',
                              'Set optimization_parameters of the table or of the spec.')
    table_names = {table.name for table in tables}
    tables_of_slots = {
        f'{table.name}/{slot.suffix}': table.name for table in tables
        for own in [table.optimizer or optimizer] if own is not None for slot in own.slots}
    for taken, name in sorted(tables_of_slots.items()):
        if taken in table_names:
            yield Problem('E460', f'table "{taken}"',
                          f'the name is that of the optimizer state of table "{name}"',
                          f'"{taken}"', 'Rename the table.')
