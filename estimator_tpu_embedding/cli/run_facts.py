"""Gathers the facts of one run from its model_dir: plain data, in the sections of the report.

No file in a model_dir ends the report: what cannot be read is a warning.
"""

from __future__ import annotations

import functools
import math
import os
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..checkpoint import event_files, profile_files
from ..checkpoint.bundle import Bundle
from ..checkpoint.event_files import Events, Series
from ..checkpoint.manifest import digest, read_manifest
from ..checkpoint.row_norms import norms_of
from ..core.optimizers import OPTIMIZERS, SlotSpec
from ..core.partition import STRATEGIES
from ..core.specs import Topology
from ..core.table_profile import TableProfile
from ..errors import EteError, bytes_text, counted
from ..migration.from_tf1 import table_names
from ..proto import codec
from . import etpe_checkpoint_ls, etpe_plan
from . import input_argument as inputs
from .checkpoint_argument import report_of
from .config_view import TableView, view_of
from .report import json_number

_PHASES = 'input', 'lookup', 'dense', 'update', 'other'
_HOSTS = 1, 2, 4, 8, 16, 32, 64  # For which loads are shown.
_OWN = 'tpu_embedding/'
_RATE, _EXAMPLES = 'global_step/sec', 'examples/sec'
_HEAVIEST = 10

Facts = dict[str, Any]
Section = Facts | str  # What there is, or why there is nothing.


class _Run:
    """What is read of a model_dir before sections are made of it."""

    def __init__(self, path: str):
        self.path = path
        self.listing = report_of([path], lambda: etpe_checkpoint_ls.listing(path)).data
        self.warnings = [one['message'] for one in self.listing['findings']]
        self.events = event_files.read(path)
        self.evaluations = {name: event_files.read(os.path.join(path, name))
                            for name in event_files.directories(path)}
        for events in (self.events, *self.evaluations.values()):
            self.warnings += events.problems
        source = min(self.attempt(lambda: inputs.load(path)) or (), default=None,
                     key=lambda one: one.config.mode == codec.Config.INFERENCE)
        self.view = view_of(source) if source else None
        self.config = source.config if source else codec.Config()
        profiles = self.config.profile_data_directory
        self.profiles: list[TableProfile] = profiles and self.attempt(
            lambda: list(profile_files.read_all(profiles))) or []

    def attempt(self, read: Callable[[], Any]) -> Any:
        """Returns what is read, or `None` and keeps a warning that it cannot be."""
        try:
            return read()
        except EteError as error:
            if error.code != inputs.NO_CONFIG:
                self.warnings += map(str, error.problems)
            return None

    def series(self, tag: str) -> Series:
        """Returns a scalar of the training, without points if there is none."""
        return self.events.series.get(tag, Series())

    def values(self, tag: str) -> dict[int, float]:
        """Returns the values of a scalar of the training, by step."""
        return dict(zip(self.series(tag).steps, self.series(tag).values))


def facts_of(path: str, with_rows: bool) -> Facts:
    """Returns the facts of the run in a model_dir; E645 if it is no directory that can be read.

    `with_rows` says whether the rows of its newest checkpoint are read, which may take long.
    """
    run = _Run(path)
    sections = {
        'metrics': _metrics(run), 'time': _time(run), 'throughput': _throughput(run),
        'tables': _tables(run, with_rows), 'ids': _ids(run), 'load': _load(run),
        'checkpoints': _checkpoints(run), 'topology': _topology(run),
        'configuration': _configuration(run)}
    facts = {name: {'absent': one} if isinstance(one, str) else one
             for name, one in sections.items()}
    return {'sentence': _sentence(run, facts['throughput']), 'directory': path, **facts,
            'warnings': list(dict.fromkeys([*run.warnings, *_doubts(run, facts['tables'])]))}


def _points(series: Series) -> Facts:
    """Returns a series for programs."""
    return {'steps': list(series.steps), 'values': list(map(json_number, series.values)),
            'count': series.count}


def _named(events: Events, pattern: str) -> Facts:
    """Returns the series of which the pattern matches the tag, by its group."""
    return {found[1]: _points(one) for tag, one in sorted(events.series.items())
            if (found := re.fullmatch(pattern, tag, re.DOTALL))}


def _sentence(run: _Run, throughput: Facts) -> str:
    view = run.view
    steps = [one.steps[-1] for one in run.events.series.values()]
    steps += [one['step'] for one in run.listing['checkpoints'] if one['step'] is not None]
    said = [counted(max(steps), 'step')] if steps else []
    if view is not None and view.batch_size_per_core:
        said.append(f'of {view.batch_size_per_core * view.cores:,} samples')
    if view is not None:
        said.append(
            f'on {counted(view.hosts, "host")} with {counted(view.cores, "core")} in all, with '
            f'{counted(len(view.tables), f"{view.strategy}-partitioned table")} of '
            f'{bytes_text(view.raw_bytes)}')
        if optimizers := sorted({table.optimizer for table in view.tables if table.optimizer}):
            said[-1] += f', trained by {" and ".join(optimizers)}'
    clauses = [' '.join(said) or 'Nothing of a run was found here']
    if loss := run.series('loss').values:
        clauses.append(f'last loss {loss[-1]:.4g}')
    if 'absent' not in throughput:
        clauses.append(f'{throughput["median_examples"]:,.0f} examples/s')
    return '; '.join(clauses) + '.'


def _metrics(run: _Run) -> Section:
    """Scalars of the training that are not of this package, and those of each evaluation."""
    train = _named(run.events, f'(?!{_OWN}|{_RATE}$|{_EXAMPLES}$)(.*)')
    evaluations = {name: _named(found, '(?!global_step$)(.*)')
                   for name, found in run.evaluations.items() if found.series}
    if not train and not evaluations:
        return 'No event file has scalars: a job writes them unless save_summary_steps is 0.'
    return {'train': train, 'evaluations': evaluations}


def _time(run: _Run) -> Section:
    """The milliseconds of a step by phase, at the steps at which they were written."""
    rates, *phases = found = [run.values(tag) for tag in (
        _RATE, *(f'{_OWN}secs_per_step/{name}' for name in _PHASES[:-1]))]
    rows = {}
    for step in sorted(set.intersection(*map(set, found))):
        row = [1000 * values[step] for values in phases]
        row.append(max(0.0, 1000 / rates[step] - sum(row)) if rates[step] > 0 else math.nan)
        if all(0 <= one < 1e9 for one in row):
            rows[step] = row
    columns = list(map(list, zip(*rows.values())))
    total = sum(map(sum, columns))
    if not total:
        return 'No event file times the phases: a training does it every log_step_count_steps.'
    shares = {name: sum(column) / total for name, column in zip(_PHASES, columns)}
    return {'steps': list(rows), 'milliseconds': dict(zip(_PHASES, columns)), 'shares': shares,
            'advice': _advice(shares, run.view.cores if run.view is not None else 1)}


def _advice(shares: Mapping[str, float], cores: int) -> list[str]:
    """Says what would make steps shorter, by the largest phases."""
    said = []
    if shares['input'] > .25:
        said.append(f'Steps wait for their input {shares["input"]:.0%} of the time. Let input_fn '
                    'prefetch, read files and parse in parallel, or use more hosts for input.')
    if (tables := shares['lookup'] + shares['update']) > .5:
        said.append(f'Look-ups and updates of tables take {tables:.0%}. Check that the native '
                    'kernels run (etpe docs kernels); fewer ids per sample or narrower tables '
                    'cost less.')
    if shares['other'] > .5:
        said.append(f'{shares["other"]:.0%} of the time is outside of the phases: hooks, '
                    'checkpoints and the loop. A larger batch would be faster'
                    + (', and so would fewer cores.' if cores > 1 else '.'))
    if shares['dense'] > .6:
        said.append(f'The dense model takes {shares["dense"]:.0%}: tables and input are not what '
                    'limits this run.')
    return said or ['No phase stands out.']


def _throughput(run: _Run) -> Section:
    examples, rate = map(run.events.series.get, (_EXAMPLES, _RATE))
    if examples is None or rate is None:
        return 'No event file has examples/sec: a training writes it every log_step_count_steps.'
    possible = [one for one in examples.values if 0 <= one < 1e15] or [0.0]
    return {'examples_per_second': _points(examples), 'steps_per_second': _points(rate),
            'median_examples': statistics.median(possible)}


def _tables(run: _Run, with_rows: bool) -> Section:
    """The tables by the config, and those of the newest checkpoint that it does not know."""
    newest = next((os.path.join(run.path, one['name']) for one in reversed(
        run.listing['checkpoints']) if one['state'] == etpe_checkpoint_ls.COMMITTED), '')
    manifest = newest and run.attempt(lambda: read_manifest(newest))
    stored = manifest.tables if manifest else {}
    known = stored and run.attempt(lambda: table_names(Bundle.open(newest), run.config)) or {}
    variables = {table: name for name, table in known.items() if name in stored}
    tables = {table.name: table for table in run.view.tables} if run.view else {}
    for name, one in stored.items():
        if name not in known:
            variables[name] = name
            tables.setdefault(name, TableView(
                name=name, rows=one.rows, dimension=one.width, slots=one.slots))
    if not tables:
        return 'Neither a config nor a checkpoint with tables is there.'
    rules = {one.name: one.optimization_parameters for one in run.config.table_descriptor}
    slots = tuple((variable, codec.decode_optimizer(rules[name]).slots
                   if tables[name].optimizer in OPTIMIZERS else ())
                  for name, variable in variables.items())
    norms = with_rows and slots and run.attempt(
        lambda: _norms(newest, digest(newest), slots)) or {}
    return {'checkpoint': os.path.basename(newest) if norms else None, 'rows': [{
        'name': name, 'variable': variables.get(name), 'rows': table.rows,
        'width': table.dimension, 'bytes': table.raw_bytes, 'optimizer': table.optimizer,
        'learning_rate': table.learning_rate, 'norms': norms.get(variables.get(name))}
        for name, table in tables.items()]}


@functools.lru_cache(32)  # While a job is watched, rows are read when a checkpoint is new.
def _norms(prefix: str, digest: str, slots: tuple[tuple[str, tuple[SlotSpec, ...]], ...]) -> Facts:
    """Returns the norms of rows by variable, of a checkpoint with a manifest of this digest."""
    bundle = Bundle.open(prefix)
    return {name: norms_of(bundle, name, own) for name, own in slots
            if name in bundle.tensors and bundle.tensors[name].is_table}


def _ids(run: _Run) -> Section:
    counts = {'rows_touched': _named(run.events, f'{_OWN}(.*)/rows_touched'),
              **{kind: _named(run.events, f'{_OWN}ids_{kind}/(.*)')
                 for kind in ('missing', 'truncated', 'out_of_range')}}
    heaviest = _heaviest(run.profiles)
    if not (heaviest or any(counts.values())):
        return 'Nothing counted ids: summaries count distinct rows, profile_data_directory all ids.'
    return {**counts, 'heaviest': heaviest}


def _heaviest(profiles: Iterable[TableProfile]) -> list[Facts]:
    """The ranges of ids that are looked up most; in a small table a range is a row."""
    found: list[Facts] = []
    best = {one.subject.table: one for one in sorted(profiles, key=lambda one: one.sampled_steps)}
    for table, profile in best.items():
        rows, count = profile.subject.vocabulary_size, len(profile.ranges)
        for number, ids in enumerate(profile.ranges):
            first, stop = (-(-at * rows // count) for at in (number, number + 1))
            if ids:
                found.append({'table': table, 'first': first, 'last': stop - 1,
                              'share': ids / profile.ids, 'even': (stop - first) / rows})
    return sorted(found, key=lambda one: -one['share'] / one['even'])[:_HEAVIEST]


def _load(run: _Run) -> Section:
    """Bytes of looked-up rows on the fullest host over the mean, by strategy and hosts."""
    if run.view is None or not run.profiles:
        return ('No profile of looked-up ids is there: EmbeddingConfigSpec('
                'profile_data_directory=...) makes a training write one, in 3 % of its steps.')
    by_hosts = {hosts: etpe_plan.measured(run.view, hosts, '', run.profiles)
                for hosts in sorted({*_HOSTS, min(max(run.view.hosts, 1), _HOSTS[-1])})}
    now = by_hosts.get(run.view.hosts, by_hosts[1])
    return {'hosts': list(by_hosts), **{
        strategy: [one['imbalance'][strategy] for one in by_hosts.values()]
        for strategy in STRATEGIES}, 'of_run': run.view.hosts, 'recommended': now['recommended'],
        'tables': len(now['tables']), 'without_profile': now['without_profile']}


def _checkpoints(run: _Run) -> Section:
    rows = run.listing['checkpoints']
    if not rows:
        return 'No checkpoint is there.'
    took = run.values(f'{_OWN}checkpoint_secs')
    return {'rows': [{**one, 'seconds': json_number(took[one['step']])
                      if one['step'] in took else None} for one in rows]}


def _topology(run: _Run) -> Section:
    view = run.view
    if view is None or any(Topology(num_hosts=view.hosts, cores_per_host=1).problems()):
        return 'No config says how many hosts there were.'
    rows, raw = (etpe_plan.per_host(view.tables, view.hosts, weigh) for weigh in (
        lambda table: 1, lambda table: table.bytes_per_row))
    return {'hosts': view.hosts, 'cores': view.cores, 'strategy': view.strategy,
            'batch_size_per_core': view.batch_size_per_core, 'rows_of_host': rows,
            'bytes_of_host': raw}


def _configuration(run: _Run) -> Section:
    view = run.view
    if view is None:
        return 'Neither a checkpoint nor a graph in the directory has an embedding config.'
    settings = {name: getattr(view, name) for name in (
        'mode', 'hosts', 'cores', 'strategy', 'batch_size_per_core')} | dict(view.settings)
    for table in view.tables:
        of_table = {'rows': table.rows, 'width': table.dimension, 'optimizer': table.optimizer,
                    'learning_rate': table.learning_rate if table.tag is None
                    else f'depends on the step (tag {table.tag})', **table.settings}
        settings |= {f'{table.name}: {key}': value for key, value in of_table.items()}
    return {'where': view.where, 'settings': settings}


def _doubts(run: _Run, tables: Facts) -> list[str]:
    """Returns what the numbers say that a person should look at."""
    said = [f'"{tag}" was not finite at step {step:,}.' for tag in run.events.series
            for step in [at for at, value in run.values(tag).items()
                         if not math.isfinite(value)][:1]]
    skipped = run.series(f'{_OWN}steps_skipped').values
    if skipped and math.isfinite(skipped[-1]):
        said.append(f'{counted(int(skipped[-1]), "step")} changed no table, since gradients were '
                    'not finite.')
    return said + [
        f'Table "{row["name"]}" has {counted(row["norms"]["not_finite"], "row")} with numbers that '
        'are not finite.'
        for row in tables.get('rows', ()) if row['norms'] and row['norms']['not_finite']]
