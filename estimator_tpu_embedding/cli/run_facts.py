"""Gathers the facts of one run from its model_dir: plain data, in the sections of the report.

No file in a model_dir ends the report: what cannot be read is a warning.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..checkpoint import event_files, profile_files
from ..checkpoint.event_files import Series
from ..checkpoint.manifest import StoredTable, digest, read_manifest
from ..core.optimizers import OPTIMIZERS
from ..core.partition import STRATEGIES
from ..core.plan import BYTES_PER_ELEMENT
from ..core.specs import Topology
from ..core.table_profile import TableProfile
from ..errors import EteError, bytes_text, counted
from ..proto import codec
from . import etpe_checkpoint_ls, etpe_plan
from . import input_argument as inputs
from .checkpoint_argument import report_of
from .config_view import TableView, view_of
from .report import json_number

PHASES = 'input', 'lookup', 'dense', 'update', 'other'
HOSTS = 1, 2, 4, 8, 16, 32, 64
"""The numbers of hosts for which loads are shown."""
_KINDS = 'missing', 'truncated', 'out_of_range'
_OWN = 'tpu_embedding/'
_RATE, _EXAMPLES = 'global_step/sec', 'examples/sec'
_HEAVIEST = 10

Facts = dict[str, Any]
Section = Facts | str
"""What there is for a section, or why there is nothing."""


class _Run:
    """What is read of a model_dir before sections are made of it."""

    def __init__(self, path: str, norms: dict[str, Facts] | None):
        self.path = path
        self.norms = None if norms is None else norms.setdefault(path, {})
        self.listing = report_of([path], lambda: etpe_checkpoint_ls.listing(path)).data
        self.warnings = [one['message'] for one in self.listing['findings']]
        self.events = event_files.read(path)
        self.evaluations = {os.path.basename(one): event_files.read(one)
                            for one in event_files.directories(path)}
        for one in (self.events, *self.evaluations.values()):
            self.warnings += one.problems
        found = self.attempt(lambda: inputs.load(path)) or ()
        self.source = next((one for one in found if one.config.mode != codec.Config.INFERENCE),
                           found[0] if found else None)
        self.view = None if self.source is None else view_of(self.source)
        directory = self.view.settings.get('profile_data_directory', '') if self.view else ''
        self.profile_directory = str(directory)
        self.profiles: list[TableProfile] = self.profile_directory and self.attempt(
            lambda: list(profile_files.read_all(self.profile_directory))) or []

    def attempt(self, read: Callable[[], Any]) -> Any:
        """Returns what is read, or `None` and keeps a warning that it cannot be."""
        try:
            return read()
        except EteError as error:
            if error.code != inputs.NO_CONFIG:
                self.warnings += map(str, error.problems)
            return None

    def values(self, tag: str) -> dict[int, float]:
        """Returns the values of a scalar of the training, by step."""
        series = self.events.series.get(tag, Series())
        return dict(zip(series.steps, series.values))


def facts_of(path: str, norms: dict[str, Facts] | None) -> Facts:
    """Returns the facts of a run.

    Args:
      path: a model_dir; E645 if it is no directory that can be read.
      norms: keeps those of the rows of a checkpoint, which take long to read, from one call to the
        next. With `None` no rows are read.
    """
    run = _Run(path, norms)
    sections = {
        'metrics': _metrics(run), 'time': _time(run), 'throughput': _throughput(run),
        'tables': _tables(run), 'ids': _ids(run), 'load': _load(run),
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


def _sentence(run: _Run, throughput: Facts) -> str:
    view, parts = run.view, []
    steps = [one.steps[-1] for one in run.events.series.values()]
    steps += [one['step'] for one in run.listing['checkpoints'] if one['step'] is not None]
    if steps:
        parts.append(counted(max(steps), 'step'))
    if view is not None:
        if view.batch_size_per_core:
            parts.append(f'of {view.batch_size_per_core * view.cores:,} samples')
        parts.append(
            f'on {counted(view.hosts, "host")} with {counted(view.cores, "core")} in all, with '
            f'{counted(len(view.tables), f"{view.strategy}-partitioned table")} of '
            f'{bytes_text(view.raw_bytes)}')
        if optimizers := sorted({table.optimizer for table in view.tables if table.optimizer}):
            parts[-1] += f', trained by {" and ".join(optimizers)}'
    clauses = [' '.join(parts)] if parts else []
    if loss := list(run.values('loss').values()):
        clauses.append(f'last loss {loss[-1]:.4g}')
    if 'absent' not in throughput:
        clauses.append(f'{throughput["median_examples"]:,.0f} examples/s')
    return ('; '.join(clauses) or 'Nothing of a run was found here') + '.'


def _metrics(run: _Run) -> Section:
    """Scalars of the training that are not of this package, and those of each evaluation."""
    train = {tag: _points(one) for tag, one in sorted(run.events.series.items())
             if not tag.startswith(_OWN) and tag not in (_RATE, _EXAMPLES)}
    evaluations = {name: {tag: _points(one) for tag, one in sorted(found.series.items())
                          if tag != 'global_step'}
                   for name, found in run.evaluations.items() if found.series}
    if not train and not evaluations:
        return ('No event file with scalars is there: a job writes them by default, unless '
                'save_summary_steps is 0.')
    return {'train': train, 'evaluations': evaluations}


def _time(run: _Run) -> Section:
    """The milliseconds of a step by phase, at the steps at which they were written."""
    rates, *phases = found = [run.values(tag) for tag in (
        _RATE, *(f'{_OWN}secs_per_step/{name}' for name in PHASES[:-1]))]
    rows = {}
    for step in sorted(set.intersection(*map(set, found))):
        row = [1000 * values[step] for values in phases]
        row.append(max(0.0, 1000 / rates[step] - sum(row)) if rates[step] > 0 else math.nan)
        if all(0 <= one < 1e9 for one in row):
            rows[step] = row
    columns = list(map(list, zip(*rows.values())))
    total = sum(map(sum, columns))
    if not total:
        return ('No event file says how long the phases of steps took: a training writes it every '
                'log_step_count_steps.')
    shares = {name: sum(column) / total for name, column in zip(PHASES, columns)}
    return {'steps': list(rows), 'milliseconds': dict(zip(PHASES, columns)), 'shares': shares,
            'advice': _advice(shares, run.view.cores if run.view is not None else 1)}


def _advice(shares: Mapping[str, float], cores: int) -> list[str]:
    """Says what would make steps shorter, by the largest phases."""
    said = []
    if shares['input'] > .25:
        said.append(f'Steps wait for their input {shares["input"]:.0%} of the time. Let input_fn '
                    'prefetch, read files and parse in parallel, or use more hosts for input.')
    if shares['lookup'] + shares['update'] > .5:
        said.append(f'Look-ups and updates of tables take {shares["lookup"]:.0%} and '
                    f'{shares["update"]:.0%}. Check that the native kernels run (etpe docs '
                    'kernels); fewer ids per sample or narrower tables cost less.')
    if shares['other'] > .5:
        said.append(f'{shares["other"]:.0%} of the time is outside of the phases: hooks, '
                    'checkpoints and the loop. ' + (
                        f'Steps are small for {cores} cores: fewer would be faster, and so would '
                        if cores > 1 else 'Faster would be ') + 'a larger batch.')
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


def _tables(run: _Run) -> Section:
    """The tables by the config, and those of the newest checkpoint that it does not know."""
    newest = next((os.path.join(run.path, one['name']) for one in reversed(
        run.listing['checkpoints']) if one['state'] == etpe_checkpoint_ls.COMMITTED), '')
    manifest = run.attempt(lambda: read_manifest(newest)) if newest else None
    stored = dict(manifest.tables) if manifest is not None else {}
    rows, slots = list[Facts](), dict[str, dict[str, float]]()
    for table, descriptor in zip(
            run.view.tables, run.source.config.table_descriptor) if run.view and run.source else ():
        variable = _variable_of(table, stored)
        if variable:
            del stored[variable]
            slots[variable] = _first_values(run, descriptor.optimization_parameters)
        rows.append({
            'name': table.name, 'variable': variable, 'rows': table.rows,
            'width': table.dimension, 'bytes': table.raw_bytes,
            'optimizer': table.optimizer, 'learning_rate': table.learning_rate})
    for name, one in stored.items():
        slots[name] = {}
        rows.append({
            'name': name, 'variable': name, 'rows': one.rows, 'width': one.width,
            'bytes': one.rows * one.width * BYTES_PER_ELEMENT * (1 + len(one.slots)),
            'optimizer': None, 'learning_rate': None})
    if not rows:
        return 'Neither a config nor a checkpoint with tables is there.'
    found = slots and run.attempt(lambda: _norms(run, newest, slots)) or {}
    for row in rows:
        row['norms'] = found.get(row['variable'])
    return {'rows': rows, 'checkpoint': os.path.basename(newest) if found else None}


def _norms(run: _Run, prefix: str, slots: Mapping[str, Mapping[str, float]]) -> Facts:
    """Returns the norms of rows by variable; reads those of a checkpoint once."""
    if run.norms is None:
        return {}
    from ..checkpoint import row_norms
    from ..checkpoint.bundle import Bundle
    key = f'{prefix} {digest(prefix)}'
    if key not in run.norms:
        bundle = Bundle.open(prefix)
        found = {name: row_norms.norms_of(bundle, name, of_table)
                 for name, of_table in slots.items()
                 if name in bundle.tensors and bundle.tensors[name].is_table}
        run.norms.clear()  # A job that is watched may save thousands.
        run.norms[key] = found
    return run.norms[key]


def _variable_of(table: TableView, stored: Mapping[str, StoredTable]) -> str | None:
    """Returns the variable of a table: the only one of its shape whose name has that of the table.

    A column `word` has the table `tbl_word`, and a variable such as
    `scope/word_embedding/embedding_weights`.
    """
    word = table.name.removeprefix('tbl_')
    alike = [name for name, one in stored.items() if word in name and one.width == table.dimension
             and (one.rows == table.rows or one.rows < table.rows == one.hosts)]
    exact = [name for name in alike
             if {table.name, word, f'{word}_embedding'} & set(name.split('/'))]
    return exact[0] if len(exact) == 1 else alike[0] if len(alike) == 1 else None


def _first_values(run: _Run, parameters: Any) -> dict[str, float]:
    """Returns the values with which the slots of a table begin, by suffix; none if unknown."""
    if parameters.WhichOneof('parameters') not in OPTIMIZERS:
        return {}
    optimizer = run.attempt(lambda: codec.decode_optimizer(parameters))
    return {slot.suffix: slot.initial_value for slot in optimizer.slots} if optimizer else {}


def _ids(run: _Run) -> Section:
    counts = {'rows_touched': _between(run, _OWN, '/rows_touched'),
              **{kind: _between(run, f'{_OWN}ids_{kind}/') for kind in _KINDS}}
    heaviest = _heaviest(run.profiles)
    if not (heaviest or any(counts.values())):
        return ('Neither an event file nor a profile counts ids: summaries count distinct '
                'rows, and profile_data_directory all ids.')
    return {**counts, 'heaviest': heaviest}


def _between(run: _Run, begin: str, end: str = '') -> Facts:
    """Returns series by what is between the beginning and the end of their tags."""
    return {tag.removeprefix(begin).removesuffix(end): _points(one)
            for tag, one in sorted(run.events.series.items())
            if tag.startswith(begin) and tag.endswith(end)}


def _heaviest(profiles: Sequence[TableProfile]) -> list[Facts]:
    """The ranges of ids that are looked up most; in a small table a range is a row."""
    found: list[Facts] = []
    best = {one.subject.table: one for one in sorted(profiles, key=lambda one: one.sampled_steps)}
    for profile in best.values():
        rows, count = profile.subject.vocabulary_size, len(profile.ranges)
        for number, ids in enumerate(profile.ranges):
            first, stop = (-(-at * rows // count) for at in (number, number + 1))
            if ids:
                found.append({'table': profile.subject.table, 'first': first, 'last': stop - 1,
                              'share': ids / profile.ids, 'even': (stop - first) / rows})
    return sorted(found, key=lambda one: -one['share'] / one['even'])[:_HEAVIEST]


def _load(run: _Run) -> Section:
    """Bytes of looked-up rows on the fullest host over the mean, by strategy and hosts."""
    if run.view is None or not run.profiles:
        return ('No profile of looked-up ids is there: EmbeddingConfigSpec('
                'profile_data_directory=...) makes a training write one, in 3 % of its steps.')
    by_hosts = {hosts: etpe_plan.measured(run.view, hosts, run.profile_directory, run.profiles)
                for hosts in sorted({*HOSTS, min(max(run.view.hosts, 1), HOSTS[-1])})}
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
    settings = {
        'mode': view.mode, 'hosts': view.hosts, 'cores': view.cores, 'strategy': view.strategy,
        'batch_size_per_core': view.batch_size_per_core, **view.settings}
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
    skipped = list(run.values(f'{_OWN}steps_skipped').values())
    if skipped and math.isfinite(skipped[-1]):
        said.append(f'{counted(int(skipped[-1]), "step")} changed no table, since gradients were '
                    'not finite.')
    return said + [
        f'Table "{row["name"]}" has {counted(row["norms"]["not_finite"], "row")} with numbers that '
        'are not finite.'
        for row in tables.get('rows', ()) if row['norms'] and row['norms']['not_finite']]
