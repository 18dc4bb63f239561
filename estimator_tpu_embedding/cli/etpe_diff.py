"""Compares the meaning of two configs. The exit status is 1 if they differ.

A checkpoint holds the rows and slots of tables by name. A difference is BREAKING if a training of B
could not restore a checkpoint of A without an option such as etpe run --drop: a removed table,
another shape, a missing slot. Learning rates, features, the number of hosts and all other
differences are safe: they may change the training, but not the restored values.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import ConfigError, Problem, quoted
from ..proto.codec import Config
from ..proto.reading import Source
from . import input_argument as inputs
from .config_view import FeatureView, TableView, Value, View, view_of
from .etpe_inspect import value_text
from .report import Grid, Line, Report, as_command

_SIGNS = {'changed': '~', 'added': '+', 'removed': '-'}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference, with the members that `docs/reports.md` describes."""

    kind: str
    where: str
    what: str
    before: Any = None
    after: Any = None
    breaking: bool = False
    why: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    as_command(parser, _report, 'A', 'B')


def _report(parsed: argparse.Namespace) -> Report:
    a, b = (_one(inputs.load(path)) for path in (parsed.a, parsed.b))
    found = differences(view_of(a), view_of(b)) or _rest(a, b)
    breaking = sum(one.breaking for one in found)
    rows = [(_SIGNS[one.kind], f'table {one.where}' if one.where else 'run', one.what, _change(one),
             'BREAKING' if one.breaking else 'safe', one.why) for one in found]
    grid = Grid(('', 'where', 'what', 'change', 'restore', 'why'), rows,
                ['bad' if one.breaking else '' for one in found])
    summary = f'{breaking} breaking, {len(found) - breaking} safe' if found else 'no differences'
    return Report(
        [*([grid] if rows else []), Line(summary, '' if found else 'good')],
        {'a': a.where, 'b': b.where, 'differences': [dataclasses.asdict(one) for one in found],
         'breaking': breaking, 'safe': len(found) - breaking}, status=1 if found else 0)


def _one(found: Sequence[Source]) -> Source:
    if len(found) > 1:
        raise ConfigError(Problem(
            'E478', 'diff', 'each side must hold one config',
            quoted(one.where for one in found[:5]), 'Name the files to compare.'))
    return found[0]


def _rest(a: Source, b: Source) -> list[Difference]:
    """Says that the bytes differ where nothing else does; so the same tables share each tag."""
    contents = set()
    for one in (a, b):
        copy = Config()
        copy.CopyFrom(one.config)
        for table in copy.table_descriptor:
            rate = table.optimization_parameters.learning_rate
            if rate.HasField('dynamic'):
                rate.dynamic.tag = 0
        contents.add(copy.SerializeToString(deterministic=True))  # Equal for NaN.
    return [] if len(contents) == 1 else [Difference(
        kind='changed', where='', what='other',
        why='an order, or fields that this tool does not know')]


def _change(one: Difference) -> str:
    if one.before is one.after is None:
        return ''
    if one.kind == 'added':
        return _side(one.after)
    return _side(one.before) if one.kind == 'removed' else (
        f'{_side(one.before)} -> {_side(one.after)}')


def _side(value: Any) -> str:
    if value is None:
        return 'unset'
    if isinstance(value, tuple) and all(isinstance(one, str) for one in value):
        return ', '.join(value) or 'none'
    return f'{value:,}' if type(value) is int else value_text(value)


def differences(a: View, b: View) -> list[Difference]:
    """Returns all differences of two configs: first of the run, then by table."""
    return [*_of_run(a, b), *sorted(_of_tables(a, b), key=lambda one: (one.where, one.kind))]


def _of_run(a: View, b: View) -> Iterator[Difference]:
    reordered = False, 'rows get the new order when they are restored'
    names, batch = ('mode', 'strategy', 'hosts', 'cores', 'batch_size_per_core'), _batch(a, b)
    yield from _changed('', ({
        **{name: getattr(one, name) for name in names},
        'features without a table': _features(one.strays, batch), **one.settings}
        for one in (a, b)), {'strategy': reordered, 'hosts': reordered})


def _changed(where: str, both: Iterable[Mapping[str, Any]], effects: Mapping[
        str, tuple[bool, str]]) -> Iterator[Difference]:
    """Compares facts; `effects` says which are breaking, and why. No others are in a checkpoint."""
    a, b = both
    for what in {**a, **b}:
        before, after = a.get(what), b.get(what)
        breaking, why = effects.get(what, (False, 'not in a checkpoint'))
        if before != after:
            yield Difference(kind='changed', where=where, what=what, before=before, after=after,
                             breaking=breaking, why=why)


def _of_tables(a: View, b: View) -> Iterator[Difference]:
    of_a, of_b = _by_name(a.tables), _by_name(b.tables)
    pairs = [(of_a[name], table) for name, table in of_b.items() if name in of_a]
    batch = _batch(a, b)
    numbers_a, numbers_b = (_functions(same) for same in zip(*pairs)) if pairs else ({}, {})
    for name in sorted(of_a.keys() - of_b.keys()):
        yield Difference(kind='removed', where=name[0], what='table', before=_shape(of_a[name]),
                         breaking=True, why='training would lose it')
    for name in sorted(of_b.keys() - of_a.keys()):
        yield Difference(kind='added', where=name[0], what='table', after=_shape(of_b[name]),
                         why='it begins with initial values')
    for before, after in pairs:
        rates: list[Value] = [one.learning_rate if one.tag is None else f'tag {one.tag}'
                              for one in (before, after)]
        if _rate(before, numbers_a) == _rate(after, numbers_b):
            rates[0] = rates[1]
        elif rates[0] == rates[1]:  # Equal tags that stand for different functions.
            rates = [f'{rates[0]}, as table {pairs[numbers[one.tag or 0]][0].name}'
                     for one, numbers in ((before, numbers_a), (after, numbers_b))]
        kept = _effect_of_slots(before, after)
        yield from _changed(after.name, ({
            'rows': one.rows, 'dimension': one.dimension, 'optimizer': one.optimizer,
            'slots': one.slots if before.optimizer == after.optimizer else None,
            'learning_rate': rate, **one.settings, 'features': _features(one.features, batch)}
            for one, rate in zip((before, after), rates)), {
                'rows': _effect_of_rows(before, after, a, b), 'optimizer': kept, 'slots': kept,
                'dimension': (True, 'another shape')})


def _shape(table: TableView) -> str:
    return f'{table.rows} x {table.dimension}'


def _by_name(tables: Iterable[TableView]) -> dict[tuple[str, int], TableView]:
    """The tables by name, and by number among those of one name: a broken config may have several.
    """
    found: dict[tuple[str, int], TableView] = {}
    seen: collections.Counter[str] = collections.Counter()
    for table in tables:
        found[table.name, seen[table.name]] = table
        seen[table.name] += 1
    return found


def _functions(tables: Iterable[TableView]) -> dict[int, int]:
    """Numbers for the tags of a config, which can be compared with those of the other.

    TensorFlow numbers the functions of a job in an order that varies from run to run. So two tags
    are the same if the same tables share them in both configs: a tag gets the number of its first
    table among those that both have.
    """
    found: dict[int, int] = {}
    for number, table in enumerate(tables):
        if table.tag is not None:
            found.setdefault(table.tag, number)
    return found


def _rate(table: TableView, functions: Mapping[int, int]) -> Hashable:
    return table.learning_rate, None if table.tag is None else functions[table.tag]


def _batch(a: View, b: View) -> int:
    """How many dimensions of a shape are the batch of the run; features may have their own."""
    return 0 if None in (a.batch_size_per_core, b.batch_size_per_core) else 1


def _features(features: Iterable[FeatureView], batch: int) -> tuple[str, ...]:
    """Names and shapes past the batch; positions depend on other tables."""
    return tuple(f'{feature.name or "unnamed"}{list(feature.shape[batch:]) or ""}'
                 for feature in features)


def _effect_of_rows(a: TableView, b: TableView, of_a: View, of_b: View) -> tuple[bool, str]:
    """Compares rows. A config has the rows of its job, but at least as many as hosts."""
    least, others = (1 if table.rows == view.hosts else table.rows
                     for table, view in ((a, of_a), (b, of_b)))
    if max(least, others) <= min(a.rows, b.rows):
        return False, ('the checkpoint decides: a config has no fewer rows than hosts, the job may '
                       'have')
    return True, 'another shape'


def _effect_of_slots(a: TableView, b: TableView) -> tuple[bool, str]:
    if a.slots is None or b.slots is None:
        return True, 'the slots are not known'
    missing = [slot for slot in b.slots if slot not in a.slots]
    if missing:
        return True, f'a checkpoint lacks the slots {", ".join(missing)}'
    return False, 'slots that are left out are not read'
