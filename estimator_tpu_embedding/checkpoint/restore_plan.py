"""Compares a checkpoint with a job, and plans where every row comes from, or says why it cannot.

TensorFlow silently restores another shape into a resource variable. It restores `mod` rows of
another number of hosts into the wrong rows. So everything is compared before a tensor is read.
`restore` carries out the plan.

Only a manifest says for certain how rows are ordered. If it was lost, the manifests of the
neighbouring checkpoints may tell, or the config in the graph that the original saved. A graph
without the engine reads row `i` for id `i`, and does not know which variables are tables. So it
must not read a checkpoint of which anything says that its rows are `mod`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import os
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from absl import logging

from ..core.names import is_of_dummy
from ..core.partition import STORED_BY_ID, Partition
from ..core.vocabulary_digests import Vocabulary, Words
from ..errors import (
    CorruptCheckpointError,
    IncompatibleCheckpointError,
    Problem,
    UnreadableConfigError,
    quoted,
    shown,
)
from ..proto import reading
from ..proto.codec import STRATEGIES
from .file_names import GRAPH, MANIFEST, base_of, name_of, step_of
from .manifest import Applied, Manifest, StoredTable, read_manifest, tensors_of
from .options import CheckpointOptions, TablesMeant, unknown_drops
from .recover import Opened

Shape = Sequence[int | None] | None

CPU_SUFFIXES = {
    'Adam/m': 'Adam', 'Adam/v': 'Adam_1', 'RMSProp/ms': 'RMSProp', 'RMSProp/mom': 'RMSProp_1',
    'CenteredRMSProp/ms': 'RMSProp', 'CenteredRMSProp/mg': 'RMSProp_1',
    'CenteredRMSProp/mom': 'RMSProp_2'}
"""The name of a slot on the TPU -> its name in `tf.train`, as in jobs with use_tpu=False."""

SUFFIXES = frozenset({
    *CPU_SUFFIXES, *CPU_SUFFIXES.values(), 'Adagrad', 'AdagradMomentum/Accumulator',
    'AdagradMomentum/Momentum', 'ProximalAdagrad', 'Ftrl', 'Ftrl_1', 'Momentum', 'ProximalYogi',
    'ProximalYogi_1', 'FrequencyEstimator', 'Adadelta', 'Adadelta_1', 'Lion'})
"""All names of slots; other tensors below a table, such as moving averages, are no slots."""

_DENSE_PART = (
    ' Other tables than before change what reads them too: warm_start_from in a new model_dir, '
    'with vars_to_warm_start, takes what still fits.')


class Needed(NamedTuple):
    """The variables that a graph has.

    Attributes:
      shapes: the full shape of every variable, by checkpoint name; a dimension or all of it may
        be unknown.
      tables: by variable name, as a checkpoint of the graph would hold them.
      optional: variables that may be absent from the checkpoint, since the user restores them.
      trains: whether the graph writes the next checkpoint. Then its tables may begin anew, and a
        table that it lacks would be lost.
      in_pieces: whether tables are so large that no buffer has room for one. Then all are streamed.
    """

    shapes: Mapping[str, Shape]
    tables: Mapping[str, StoredTable]
    optional: Container[str] = ()
    trains: bool = True
    in_pieces: bool = False


class Source(NamedTuple):
    """Where the rows of a variable come from.

    Attributes:
      tensor: the name of the stored tensor.
      stored: the order of its rows.
      here: the order of the rows of the variable.
    """

    tensor: str
    stored: Partition
    here: Partition

    @property
    def is_whole(self) -> bool:
        """Whether the tensor has a value for every row."""
        return self.stored.vocabulary_size == self.here.vocabulary_size

    def is_as_here(self, variable: str) -> bool:
        """Whether name, number of rows and order equal those of the variable."""
        return (self.tensor == variable and self.is_whole
                and self.stored.strategy == self.here.strategy
                and _hosts(self.stored) == _hosts(self.here))

    @property
    def lies_alike(self) -> bool:
        """Whether TensorFlow's own savers put every row into its place, perhaps in more memory."""
        return self.is_whole and (self.stored.stores_by_id and self.here.stores_by_id
                                  or self.is_as_here(self.tensor))


def _hosts(order: Partition) -> int:
    return min(order.num_hosts, order.vocabulary_size)  # Others have no rows.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """How a graph gets the values of a checkpoint.

    Attributes:
      where: the checkpoint, as messages call it.
      streamed: the sources of the variables whose rows lie otherwise there than here, or which
        `Needed.in_pieces` is about, by variable; slots too.
      begun: variables that begin with their initial values.
      facts: facts for the user.
      suits_tensorflow: whether TensorFlow's own savers give the same.
    """

    where: str
    streamed: Mapping[str, Source]
    begun: tuple[str, ...]
    facts: tuple[str, ...]
    suits_tensorflow: bool

    @property
    def is_plain(self) -> bool:
        """Whether the checkpoint holds everything, in the same places as here."""
        return not self.streamed and not self.begun


def compare(opened: Opened, needed: Needed, options: CheckpointOptions) -> RestorePlan:
    """Plans where every value of a graph comes from; the error has all that forbids it."""
    return _Comparison(opened, needed, options).plan()


class _Comparison:
    """Goes through tables, then other variables, and collects sources, facts and problems."""

    def __init__(self, opened: Opened, needed: Needed, options: CheckpointOptions):
        self._opened, self._needed, self._options = opened, needed, options
        stored = opened.manifest.tables if opened.manifest is not None else {
            name: None for name, shape in opened.shapes.items()
            if len(shape) == 2 and not is_slot(name, opened.shapes)}
        self._choices = TablesMeant(
            options, stored.keys(), needed.tables.keys(),
            opened.manifest.applied if opened.manifest is not None else Applied())
        self._sources: dict[str, Source] = {}
        self._begun: list[str] = []
        self._new: list[str] = []
        self._facts: list[str] = []
        self._problems: list[Problem] = []

    def plan(self) -> RestorePlan:
        """Returns the plan, or raises an error with all problems."""
        for name, table in sorted(self._needed.tables.items()):
            self._compare_table(name, table)
        of_tables = {variable for name, table in self._needed.tables.items()
                     for variable in tensors_of(name, table)}
        for name, shape in sorted(self._needed.shapes.items()):
            if name not in of_tables:
                self._compare_variable(name, shape)
        if self._needed.trains:
            self._facts += [f'{done} was done before it was saved' for done in self._choices.done]
            self._check_tables_left_over()
        if self._problems or self._needed.trains:
            self._problems += self._choices.problems
        if self._problems:
            raise IncompatibleCheckpointError(*self._problems)
        streamed = {variable: source for variable, source in self._sources.items()
                    if self._needed.in_pieces or not source.is_as_here(variable)}
        return RestorePlan(
            where=self._opened.where, streamed=streamed, begun=tuple(self._begun),
            facts=tuple(self._facts),
            suits_tensorflow=not self._begun and all(
                source.lies_alike and source.tensor == variable
                for variable, source in streamed.items()))

    def _compare_table(self, name: str, table: StoredTable) -> None:
        source = self._choices.source_of(name)
        if source is None or source not in self._opened.shapes:
            self._compare_absent(name, table)
            return
        stored = list(self._opened.shapes[source])
        if stored != [table.rows, table.width] and not self._may_grow(name, table, stored):
            return
        order = self._order_of(source, stored[0], table)
        if order is None:
            return
        here = table.partition
        self._sources[name] = Source(source, order, here)
        if source != name:
            self._facts.append(f'table "{name}" is "{source}" there')
        if stored != [table.rows, table.width]:
            self._facts.append(f'rows {stored[0]} to {table.rows - 1} of "{name}" are new')
        if _text(order) != _text(here) and not (order.stores_by_id and here.stores_by_id):
            self._facts.append(f'the rows of "{name}" are brought from {_text(order)} to '
                               f'{_text(here)}')
        if name in self._choices.reset:
            self._begin_slots(name, table)
        else:
            self._compare_slots(name, source, stored, table)

    def _compare_absent(self, name: str, table: StoredTable) -> None:
        """Handles a table that the checkpoint lacks: it is new if there is a manifest."""
        if name in self._needed.optional:
            return
        if self._opened.manifest is not None and self._needed.trains:
            self._new.append(name)
            self._begun += tensors_of(name, table)
            self._facts.append(f'table "{name}" is not there and begins with initial values')
            return
        self._add_missing(name, [table.rows, table.width])

    def _may_grow(self, name: str, table: StoredTable, stored: list[int]) -> bool:
        """Whether the table may have more rows here; adds a problem if not."""
        is_longer = len(stored) == 2 and stored[1] == table.width and stored[0] < table.rows
        if is_longer and name in self._choices.grow:
            return True
        self._add_shape(name, [table.rows, table.width], stored, (
            f'If rows were added: --grow {name}, or CheckpointOptions(grow=...).' if is_longer
            else 'Use the sizes of the embedding spec it was trained with, or another model_dir.'))
        return False

    def _order_of(self, source: str, rows: int, table: StoredTable) -> Partition | None:
        """Returns the order of the rows of a stored tensor; adds a problem if nothing says it."""
        manifest, assumed = self._opened.manifest, self._options.assumed_order()
        if manifest is not None:
            stored = manifest.tables.get(source)  # A variable of the model has its rows by id.
            return stored.partition if stored is not None else Partition.by_id(rows)
        if assumed is None:
            if self._sign is not None or table.strategy not in STORED_BY_ID:
                self._problems.append(unknown_order(
                    'E608', self._opened.where, f'table "{shown(source, 255)}"', self._sign))
                return None
            fact = ('it has no manifest, and its rows are taken in the order of ids; if they are '
                    'mod rows: --assume mod:H for H hosts')
            self._facts += [fact] if fact not in self._facts else []
            return Partition.by_id(rows)
        strategy, hosts = assumed
        return Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts)

    @functools.cached_property
    def _sign(self) -> Sign | None:
        return sign_of_mod(self._opened.prefix)

    def _compare_slots(self, name: str, source: str, stored: list[int], table: StoredTable
                       ) -> None:
        found = stored_slots(self._opened, source, stored)
        names = _names_there(table.slots, found)
        missing = [slot for slot, suffix in names.items() if suffix not in found
                   and f'{name}/{slot}' not in self._needed.optional]
        lost = sorted(found - set(names.values())) if self._needed.trains else []
        if missing or lost:
            if name in self._choices.were_reset:  # That was for another optimizer.
                self._begin_slots(name, table)
                return
            self._problems.append(Problem(
                'E631', self._opened.where, f'it must hold the slots {quoted(missing)} of table '
                f'"{name}", of {stored}' if missing else f'the job must have the slots '
                f'{quoted(lost)} of table "{name}", which training would lose',
                f'{quoted(f"{shown(source)}/{slot}" for slot in sorted(found))} in the checkpoint',
                'Use the optimizer it was trained with; if another is meant: --reset-slots '
                f'{name}, or CheckpointOptions(reset_slots=...).'))
            return
        if any(slot != suffix for slot, suffix in names.items()):
            there = quoted(f'{source}/{suffix}' for suffix in names.values())
            self._facts.append(f'the slots of "{name}" are {there} there')
        order = self._sources[name]
        self._sources.update({f'{name}/{slot}': order._replace(tensor=f'{source}/{suffix}')
                              for slot, suffix in names.items() if suffix in found})

    def _begin_slots(self, name: str, table: StoredTable) -> None:
        self._begun += [f'{name}/{slot}' for slot in table.slots]
        self._facts.append(f'the slots of "{name}" begin with initial values' if table.slots
                           else f'the slots of "{name}" are left out')

    def _compare_variable(self, name: str, shape: Shape) -> None:
        """Compares a variable that is no table."""
        stored = self._opened.shapes.get(name)
        if stored is None:
            if is_of_dummy(name):
                self._begun.append(name)
            elif name not in self._needed.optional:
                self._add_missing(name, shape)
        elif shape is not None and not (len(stored) == len(shape) and all(
                want in (None, have) for have, want in zip(stored, shape))):
            there = self._opened.tables.keys()
            differs = bool(there) and there != self._needed.tables.keys()
            self._add_shape(name, shape, stored, 'Use the sizes it was trained with, or another '
                            'model_dir.' + _DENSE_PART * differs)

    def _add_shape(self, name: str, shape: Shape, stored: Sequence[int], remedy: str) -> None:
        self._problems.append(Problem(
            'E604', self._opened.where, f'the variable "{name}" is {shape} in this job',
            f'{list(stored)} in the checkpoint', remedy))

    def _add_missing(self, name: str, shape: Shape) -> None:
        near = difflib.get_close_matches(name, self._opened.shapes, n=3)
        renamed = [other for other, table in sorted(self._opened.tables.items())
                   if other not in self._needed.tables and [table.rows, table.width] == shape]
        remedy = f'Similar names there: {quoted(map(shown, near))}.' if near else ''
        if renamed and name in self._needed.tables:
            remedy = f'If it was renamed: --rename {renamed[0]}={name}.'
        self._problems.append(Problem(
            'E606', self._opened.where, f'it must hold the variable "{name}" {shape}',
            'no variable of that name', remedy))

    def _check_tables_left_over(self) -> None:
        """Adds a problem for each table that the next checkpoint would lack."""
        taken = {self._choices.source_of(name) for name in self._needed.tables}
        gone = {name: table for name, table in self._opened.tables.items()
                if name not in taken and name not in self._needed.shapes}
        left = {name: table for name, table in gone.items() if name not in self._choices.drop}
        self._facts += [f'its table "{name}" is dropped'
                        for name in sorted(gone.keys() - left.keys())]
        for name, table in sorted(left.items()):
            remedy = f'If it is not needed any more: --drop {name}, or CheckpointOptions(drop=...).'
            alike = [new for new in self._new if _form(self._needed.tables[new]) == _form(table)]
            if alike:
                remedy = f'If it was renamed: --rename {name}={alike[0]}. {remedy}'
            self._problems.append(Problem(
                'E632', self._opened.where, f'the job must have its table "{name}", which training '
                'would lose', f'tables {quoted(sorted(self._needed.tables))}', remedy))
        if left:
            self._problems += unknown_drops(self._options, left)


def _form(table: StoredTable) -> tuple[int, int, set[str]]:
    return table.rows, table.width, set(table.slots)


def _text(order: Partition) -> str:
    return f'{order.strategy} on {order.num_hosts} hosts'


def is_slot(tensor: str, tensors: Collection[str]) -> bool:
    """Whether a tensor has the name of a slot of another one.

    >>> is_slot('t/Adam/m', ['t', 't/Adam/m'])
    True
    """
    return any(tensor.endswith(f'/{suffix}') and tensor.removesuffix(f'/{suffix}') in tensors
               for suffix in SUFFIXES)


def stored_slots(opened: Opened, table: str, shape: Sequence[int]) -> frozenset[str]:
    """Returns the suffixes of the slots that are stored for a table of that shape."""
    named = opened.tables[table].slots if table in opened.tables else SUFFIXES
    return frozenset(suffix for suffix in named
                     if list(opened.shapes.get(f'{table}/{suffix}', ())) == list(shape))


def _names_there(wanted: Sequence[str], stored: Collection[str]) -> dict[str, str]:
    """Returns the names of slots in a checkpoint, by their names in the job.

    Names of a job without a TPU count only if their number is the same: with three slots the second
    slot of RMSProp means something else.

    >>> _names_there(['RMSProp/ms', 'RMSProp/mom'], ['RMSProp', 'RMSProp_1'])
    {'RMSProp/ms': 'RMSProp', 'RMSProp/mom': 'RMSProp_1'}
    >>> _names_there(['RMSProp/ms', 'RMSProp/mom'], ['RMSProp', 'RMSProp_1', 'RMSProp_2'])
    {'RMSProp/ms': 'RMSProp/ms', 'RMSProp/mom': 'RMSProp/mom'}
    """
    names = {slot: CPU_SUFFIXES.get(slot, slot) for slot in wanted}
    return names if set(names.values()) == set(stored) else {slot: slot for slot in wanted}


def check_words(opened: Opened, words: Iterable[Words], options: CheckpointOptions) -> None:
    """Warns of each feature whose words have other ids than in a checkpoint.

    A word with another id would get the row of another word, and no shape would show it. A feature
    that only one of both has is no difference. The name of a file does not matter. With
    `strict_vocabulary` it raises E641 for all such features.
    """
    stored = opened.manifest.vocabularies if opened.manifest is not None else {}
    code = 'E641' if options.strict_vocabulary else 'W631'
    found = []
    for one in words:
        there = stored.get(one.feature)
        here = None if there is None else _read(one, functools.partial(one.as_in, there))
        if here not in (None, there):
            found.append(Problem(
                code, f'column "{shown(one.feature, 255)}"', 'its words must have the ids that '
                f'they have in {opened.where}, or they get the rows of others',
                f'{here}, by {one.source}, and there {there}',
                'Restore the vocabulary it was trained with, or train in another model_dir.'))
    if found and options.strict_vocabulary:
        raise IncompatibleCheckpointError(*found)
    for problem in found:
        logging.warning('%s', problem)


def stored_words(words: Iterable[Words]) -> dict[str, Vocabulary]:
    """Returns what a checkpoint records of the words of a job, by feature, where it can be read."""
    return {one.feature: found for one in words
            if (found := _read(one, one.vocabulary)) is not None}


def _read(one: Words, read: Callable[[], Vocabulary]) -> Vocabulary | None:
    """Calls a method; `None` if a file cannot be read, which the look-up of its words reports."""
    try:
        return read()
    except OSError as error:
        logging.debug('%s: %s', one.source, error)
        return None


def tables_out_of_order(manifest: Manifest | None) -> dict[str, StoredTable]:
    """Returns the tables of a manifest whose rows are not in the order of ids, by variable name."""
    return {} if manifest is None else {
        name: table for name, table in sorted(manifest.tables.items())
        if not table.partition.stores_by_id}


def check_order_of_ids(opened: Opened, options: CheckpointOptions) -> None:
    """Refuses a checkpoint from which training without the engine cannot continue.

    E609 if a table in it is `mod` on several hosts; E608 if one seems to be.
    """
    check_without_manifest(opened, options)
    problems = [
        Problem('E609', opened.where,
                f'the rows of table "{name}" must be in the order of ids to be trained with '
                'use_tpu=False', f'mod rows of {table.hosts} hosts', 'Train it with use_tpu=True '
                'and partition_strategy="div" until its next checkpoint.')
        for name, table in tables_out_of_order(opened.manifest).items()]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def check_without_manifest(opened: Opened, options: CheckpointOptions) -> None:
    """Refuses (E608) a checkpoint without a manifest if anything says that its rows are `mod`."""
    if opened.manifest is not None:
        return
    order = options.assumed_order()
    if order is not None and order[0] not in STORED_BY_ID:
        raise IncompatibleCheckpointError(Problem(
            'E608', opened.where, 'a graph without the engine needs the manifest that says '
            f'which tensors are {options.assume} tables', 'no manifest', 'Train with use_tpu=True '
            'from it for a step; the next one has it.'))
    sign = sign_of_mod(opened.prefix) if order is None else None
    if sign is not None:
        raise IncompatibleCheckpointError(unknown_order('E608', opened.where, 'its tables', sign))


class Sign(NamedTuple):
    """A sign that rows are `mod`: on how many hosts, and the file that says so."""

    hosts: int
    where: str


def unknown_order(code: str, where: str, tables: str, sign: Sign | None) -> Problem:
    """Returns the problem that nothing says how the rows of a table are ordered."""
    hosts, meaning, got = 'H', 'H hosts', 'no manifest'
    if sign is not None:
        hosts, meaning = str(sign.hosts), 'that'
        got += f', and {sign.where} says mod on {hosts} hosts'
    return Problem(
        code, where, f'the rows of {tables} mean ids only with the manifest that says how they '
        'are ordered', got, f'If you know it: --assume mod:{hosts} for {meaning}, or --assume '
        'div; CheckpointOptions(assume=...).')


def sign_of_mod(checkpoint: str) -> Sign | None:
    """Returns the first sign that the rows of a checkpoint are not in the order of ids."""
    for other in _neighbours(checkpoint):
        with contextlib.suppress(CorruptCheckpointError):
            for table in tables_out_of_order(read_manifest(other)).values():
                return Sign(table.hosts, shown(os.path.basename(other + MANIFEST), 255))
    graph = checkpoint + GRAPH
    with contextlib.suppress(UnreadableConfigError):  # There is none, or it says nothing.
        for config in (source.config for source in reading.read_file(graph, follow=False)):
            if config.sharding_strategy == STRATEGIES['mod'] and config.num_hosts > 1:
                return Sign(config.num_hosts, shown(os.path.basename(graph), 255))
    return None


def _neighbours(checkpoint: str) -> list[str]:
    """Returns the next older and the next newer checkpoint that have a manifest.

    One that is further away may be of another job, which may have put rows in another order.
    """
    directory, name = os.path.split(checkpoint)
    base, own = base_of(name), step_of(name)
    names = os.listdir(directory or '.') if os.path.isdir(directory or '.') else []
    others = [name.removesuffix(MANIFEST) for name in names if name.endswith(MANIFEST)]
    steps = sorted(step for other in others if base_of(other) == base
                   and (step := step_of(other)) is not None)
    before = [step for step in steps if own is not None and step < own]
    after = [step for step in steps if own is None or step > own]
    return [os.path.join(directory, name_of(base, step)) for step in (*before[-1:], *after[:1])]
