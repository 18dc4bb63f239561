"""Makes the page of a report: one file of HTML, with its styles, scripts and numbers inside.

uPlot draws the charts. It takes 52 KB, draws thousands of points at once, and has values in its
legend as HTML; libraries of its kind are four to sixty times as large.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import Problem, SetupError, bytes_text, counted
from .report import printable, time_text

MAX_CHARTS, MAX_LINES = 24, 8
"""The most charts of metrics, and lines in a chart; the page says if more are there."""
_PICTURES = 12
_HOSTS = 16
_PHASES = {'input': 'input', 'lookup': 'look-up', 'dense': 'dense', 'update': 'update',
           'other': 'other'}
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
    parts = importlib.resources.files(__package__) / 'page_parts'
    texts = {one.name: one.read_text('utf-8') for one in parts.iterdir() if one.is_file()}
    engine = jinja2.Environment(
        loader=jinja2.DictLoader(texts), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined)
    engine.filters |= {
        'bytes': lambda count: '–' if count is None else bytes_text(count), 'count': counted,
        'when': time_text, 'number': _number, 'plain': printable,
        'percent': lambda share: f'{100 * share:.1f} %'}
    view = _View(list(zip(_names([run['directory'] for run in runs]), runs)))
    return engine.get_template('page.html').render(
        runs=view.runs, view=view, phases=_PHASES, watched=watched, parts=texts,
        most_hosts=_HOSTS, made=time_text(time.time()))


class _View:
    """What the template asks for. `charts` has the charts of the page, in the order of use."""

    def __init__(self, runs: list[tuple[str, Facts]]):
        self.runs, self.charts = runs, list[dict[str, Any]]()

    def has(self, section: str) -> bool:
        return any('absent' not in run[section] for _, run in self.runs)

    def chart(self, title: str, lines: Facts, unit: str = '', x: str = 'step', kind: str = 'line',
              names: Sequence[str] = ()) -> dict[str, Any]:
        """Adds a chart of series by label; returns it for its table of numbers."""
        labels = list(map(printable, lines))
        columns = [dict(zip(one['steps'], map(_finite, one['values'])))
                   for one in list(lines.values())[:MAX_LINES]]
        at = sorted(set().union(*columns))
        self.charts.append({
            'id': f'chart{len(self.charts)}', 'title': printable(title), 'unit': unit,
            'x_label': x, 'kind': kind, 'names': list(names), 'x': at,
            'labels': labels[:MAX_LINES], 'others': labels[MAX_LINES:],
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
        return [self.chart(title, {name: run['throughput'][key] for name, run in self.runs
                                   if key in run['throughput']}, '/s')
                for key, title in (('examples_per_second', 'Examples per second'),
                                   ('steps_per_second', 'Steps per second'))]

    def time(self, name: str, found: Facts) -> dict[str, Any]:
        sums = [sum(row) or 1 for row in zip(*found['milliseconds'].values())]
        return self.chart(f'Time of a step{self._of(name)}', {
            label: _series(found['steps'], [
                100 * one / total for one, total in zip(found['milliseconds'][phase], sums)])
            for phase, label in _PHASES.items()}, '%', kind='stack')

    def ids(self, name: str, found: Facts) -> list[dict[str, Any]]:
        """Returns a chart for each kind of counts, of which the largest come first."""
        return [self.chart(f'{title}{self._of(name)}', dict(sorted(
            found[kind].items(), key=lambda line: -(_finite(line[1]['values'][-1]) or 0))), 'count')
            for kind, title in _KINDS.items() if found[kind]]

    def histograms(self, name: str, tables: Sequence[Facts]) -> list[dict[str, Any]]:
        """Returns charts of the norms of the largest tables."""
        told = [(one['name'], one['norms']) for one in sorted(tables, key=lambda one: -one['bytes'])
                if one['norms'] and one['norms']['counts']]
        return [self.chart(f'{table}{self._of(name)}', {
            'rows': _series(norms['bounds'], norms['counts'])}, 'rows', 'norm', 'bars')
            for table, norms in told[:_PICTURES]]

    def load(self, name: str, found: Facts) -> dict[str, Any]:
        return self.chart(f'Fullest host over the mean{self._of(name)}', {
            strategy: _series(range(len(found['hosts'])), found[strategy])
            for strategy in ('div', 'mod')}, '×', 'hosts', names=list(map(str, found['hosts'])))

    def saves(self, name: str, rows: Sequence[Facts]) -> list[dict[str, Any]]:
        """Returns a chart of the checkpoints whose time is known, if there are any."""
        sizes = {row['created']: row['bytes'] / 2**20 for row in rows
                 if row['created'] and 0 < row['created'] < 2**33}
        return [self.chart(f'Sizes of checkpoints{self._of(name)}', {
            'MiB': _series(sizes, sizes.values())}, 'MiB', 'time (UTC)', 'dots')] if sizes else []

    def settings(self) -> list[tuple[str, bool, list[tuple[str, list[Any]]]]]:
        """Returns the settings that differ and the others: with the values in all runs."""
        found = [run['configuration'].get('settings', {}) for _, run in self.runs]
        rows = [(key, [one.get(key) for one in found])
                for key in dict.fromkeys(key for one in found for key in one)]
        return [(title, differs, [(key, values) for key, values in rows
                                  if (len(set(map(repr, values))) > 1) == differs])
                for title, differs in (('What differs', True), ('What is equal', False))]

    def differs(self, table: Facts, key: str) -> bool:
        """Whether a table of that name has another value in another run."""
        return any(other['name'] == table['name'] and other[key] != table[key]
                   for _, run in self.runs for other in run['tables'].get('rows', ()))

    def _of(self, name: str) -> str:
        return f', {name}' if len(self.runs) > 1 else ''


def _names(directories: Sequence[str]) -> list[str]:
    """Returns short names of directories, by which they differ."""
    short = [os.path.basename(os.path.normpath(one)) for one in directories]
    return [name if short.count(name) == 1 else f'{number}: {directory}'
            for number, (name, directory) in enumerate(zip(short, directories), 1)]


def _series(xs: Iterable[float], ys: Iterable[float]) -> Facts:
    return {'steps': xs, 'values': ys}


def _finite(value: Any) -> float | None:
    """Returns a number in few digits; `None` for what no chart has a place for."""
    return float(f'{value:.5g}') if isinstance(value, (int, float)) and math.isfinite(value) else (
        None)


def _number(value: Any) -> str:
    """Returns a value for people."""
    if value is None:
        return '–'
    if isinstance(value, float):
        return f'{value:,.4g}' if abs(value) < 1e5 else f'{value:,.0f}'
    return f'{value:,}' if isinstance(value, int) and not isinstance(value, bool) else str(value)
