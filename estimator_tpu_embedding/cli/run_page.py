"""Makes the page of a report: one file of HTML, with its styles, scripts and numbers inside.

uPlot draws the charts. It takes 52 KB, draws thousands of points at once, and has values in its
legend as HTML; libraries of its kind are four to sixty times as large.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import Problem, SetupError, bytes_text, counted
from .report import MAX_LINE, printable, time_text

MAX_CHARTS, MAX_LINES = 24, 8
"""The most charts of a kind, and lines in a chart; the page says if more are there."""
_KINDS = {'rows_touched': 'Distinct rows of a step', 'missing': 'Missing ids so far',
          'truncated': 'Truncated ids so far', 'out_of_range': 'Ids out of range so far'}

Facts = Mapping[str, Any]


def html_of(runs: Sequence[Facts], watched: float | None = None) -> str:
    """Returns the page about runs, of which `run_facts` has the facts.

    A browser loads it anew every `watched` seconds, if that is given. E663 without Jinja2.
    """
    if importlib.util.find_spec('jinja2') is None:
        raise SetupError(Problem(
            'E663', 'etpe report -o', 'the package jinja2 must be installed', 'no such package',
            'pip install jinja2, or "estimator_tpu_embedding[report]"; --format json needs none.'))
    import jinja2
    engine = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, 'page_parts'), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    engine.filters |= {
        'bytes': bytes_text, 'count': counted, 'when': time_text, 'plain': _plain,
        'percent': lambda share: f'{100 * share:.1f} %'}
    view = _View(list(zip(_names([run['directory'] for run in runs]), runs)))
    return engine.get_template('page.html').render(
        runs=view.runs, view=view, watched=watched, made=time_text(time.time()))


class _View:
    """What the template asks for. `charts` has the charts of the page, in the order of use."""

    def __init__(self, runs: list[tuple[str, Facts]]):
        self.runs, self.charts = runs, list[dict[str, Any]]()

    def chart(self, title: str, lines: Facts, unit: str = '', x: str = 'step', kind: str = 'line'
              ) -> dict[str, Any]:
        """Adds a chart of series by label; returns it for its table of numbers."""
        labels = list(map(printable, lines))
        columns = [dict(zip(one['steps'], map(_finite, one['values'])))
                   for one in list(lines.values())[:MAX_LINES]]
        at = sorted(set().union(*columns))
        self.charts.append({
            'id': f'chart{len(self.charts)}', 'title': printable(title), 'unit': unit,
            'x_label': x, 'kind': kind, 'x': at, 'labels': labels[:MAX_LINES],
            'others': labels[MAX_LINES:],
            'y': [[column.get(one) for one in at] for column in columns]})
        return self.charts[-1]

    def metrics(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Returns a chart for each scalar, train and eval together, and the scalars without one."""
        found: dict[str, dict[str, Any]] = {}
        for name, run in self.runs:
            for kind, series in [('train', run['metrics'].get('train', {})), *run['metrics'].get(
                    'evaluations', {}).items()]:
                for tag, one in series.items():
                    found.setdefault(tag, {})[kind + self._of(name)] = one
        tags = sorted(found, key=lambda tag: (tag != 'loss', -len(found[tag]), tag))
        return ([self.chart(tag, found[tag]) for tag in tags[:MAX_CHARTS]], tags[MAX_CHARTS:])

    def throughput(self) -> list[dict[str, Any]]:
        """Returns charts with a line for each run that has the numbers, if there are any."""
        return [self.chart(title, lines, '/s') for key, title in (
            ('examples_per_second', 'Examples per second'),
            ('steps_per_second', 'Steps per second'))
            if (lines := {name: run['throughput'][key] for name, run in self.runs
                          if key in run['throughput']})]

    def time(self, name: str, found: Facts) -> dict[str, Any]:
        sums = [sum(row) or 1 for row in zip(*found['milliseconds'].values())]
        return self.chart(f'Time of a step{self._of(name)}', {
            phase: dict(steps=found['steps'],
                        values=[100 * one / total for one, total in zip(took, sums)])
            for phase, took in found['milliseconds'].items()}, '%', kind='stack')

    def ids(self, name: str, found: Facts) -> list[dict[str, Any]]:
        """Returns a chart for each kind of counts, of which the largest come first."""
        return [self.chart(f'{title}{self._of(name)}', dict(sorted(
            found[kind].items(), key=lambda line: -(_finite(line[1]['values'][-1]) or 0))), 'count')
            for kind, title in _KINDS.items() if found[kind]]

    def histograms(self, name: str, tables: Sequence[Facts]) -> list[dict[str, Any]]:
        """Returns charts of the norms of the largest tables."""
        told = sorted((one for one in tables if one['norms'] and one['norms']['counts']),
                      key=lambda one: -one['bytes'])
        return [self.chart(one['name'] + self._of(name), {
            'rows': dict(steps=one['norms']['bounds'], values=one['norms']['counts'])}, 'rows',
            'norm', 'bars') for one in told[:MAX_CHARTS]]

    def load(self, name: str, found: Facts) -> dict[str, Any]:
        return self.chart(f'Fullest host over the mean{self._of(name)}', {
            strategy: dict(steps=found['hosts'], values=found[strategy])
            for strategy in ('div', 'mod')}, '×', 'hosts', 'log')

    def saves(self, name: str, rows: Sequence[Facts]) -> list[dict[str, Any]]:
        """Returns a chart of the checkpoints whose time is known, if there are any."""
        sizes = {row['created']: row['bytes'] / 2**20 for row in rows
                 if row['created'] and 0 < row['created'] < 2**33}
        return [self.chart(f'Sizes of checkpoints{self._of(name)}', {
            'MiB': dict(steps=sizes, values=sizes.values())}, 'MiB', 'time (UTC)', 'dots')
        ] if sizes else []

    def settings(self) -> list[tuple[bool, str, list[Any]]]:
        """Returns each setting: whether it differs, its name, and the values in all runs."""
        found = [run['configuration'].get('settings', {}) for _, run in self.runs]
        rows = {key: [one.get(key) for one in found] for key in itertools.chain(*found)}
        return [(len(set(map(repr, values))) > 1, key, values) for key, values in rows.items()]

    def differs(self, table: Facts) -> bool:
        """Whether another run has a table of that name that was declared in another way."""
        keys = 'rows', 'width', 'bytes', 'optimizer', 'learning_rate'
        return any(other['name'] == table['name'] and any(other[key] != table[key] for key in keys)
                   for _, run in self.runs for other in run['tables'].get('rows', ()))

    def _of(self, name: str) -> str:
        return f', {name}' if len(self.runs) > 1 else ''


def _names(directories: Sequence[str]) -> list[str]:
    """Returns short names of directories, by which they differ."""
    short = [os.path.basename(os.path.normpath(one)) for one in directories]
    return [name if short.count(name) == 1 else f'{number}: {directory}'
            for number, (name, directory) in enumerate(zip(short, directories), 1)]


def _finite(value: float | str) -> float | None:
    """Returns a number in few digits; `None` for what no chart has a place for."""
    return float(f'{value:.5g}') if not isinstance(value, str) and math.isfinite(value) else None


def _plain(value: Any, most: int = MAX_LINE) -> str:
    """Returns a value for people, without control characters."""
    if value is None:
        return '–'
    if isinstance(value, float):
        return f'{value:,.4g}' if abs(value) < 1e5 else f'{value:,.0f}'
    return f'{value:,}' if type(value) is int else printable(str(value), most)
