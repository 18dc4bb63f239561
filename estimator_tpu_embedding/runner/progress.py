"""Tells the user of runs: a line at the start, rates on the way, a report at the end, the sums."""

from __future__ import annotations

import collections
import dataclasses
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from ..errors import Problem, bytes_text, counted, quoted
from ..hosts import step_clock
from ..hosts.memory_limits import text_of
from ..hosts.step_clock import Figures
from ..ops.ids import IdCounts

_sink: Callable[[str], None] = lambda line: tf.logging.info('%s', line)  # noqa: E731
_reports: list[RunReport] = []
KINDS = ('missing', 'truncated', 'out_of_range')
"""The kinds of ids that were not looked up."""


def announce(line: str) -> None:
    """Tells the user one fact about a run as a whole."""
    _sink(line)


def send_announcements_to(sink: Callable[[str], None]) -> None:
    """Sends announcements to `sink` instead of the log; `etpe run` prints them."""
    global _sink
    _sink = sink


def reports() -> list[RunReport]:
    """Returns the reports of all runs of this process that have ended, oldest first."""
    return list(_reports)


def _per_second(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


PHASES = ('input', 'lookup', 'dense', 'update')


@dataclasses.dataclass(slots=True)
class TimeSplit:
    """The seconds of a run by phase of a step.

    Attributes:
      input: steps waited for the batches of all cores.
      lookup: from the start of steps until all cores had their activations.
      dense: from there until the gradients of tables were there and the dense optimizer was done.
        In an evaluation it lasts until metrics were updated, in a prediction until predictions
        were there.
      update: from there until tables were written. A part that runs beside the dense phase does
        not count.
      enqueue: infeed threads drew batches and handed them over; mean of all threads. This time
        passes beside the steps.
    """

    input: float = 0.0
    lookup: float = 0.0
    dense: float = 0.0
    update: float = 0.0
    enqueue: float = 0.0

    def add_step(self, clock: Any) -> None:
        """Adds the times of a step, which `clock_of` gave."""
        begin, looked_up, trained, end = clock.tolist()
        self.lookup += max(0.0, looked_up - begin)  # The clock of the machine may be set back.
        self.dense += max(0.0, trained - looked_up)
        self.update += max(0.0, end - trained)

    def since(self, before: TimeSplit) -> TimeSplit:
        """Returns the seconds that were added after the state `before`."""
        return TimeSplit(*[now - then for now, then in zip(
            dataclasses.astuple(self), dataclasses.astuple(before))])

    def shares(self, seconds: float, *, with_tables: bool = True) -> str:
        """Returns the phases in percent of all seconds; hooks and the loop took the rest.

        Without tables, a step is its dense phase.

        >>> TimeSplit(input=1.0, lookup=2.0, dense=4.0, update=2.0).shares(10.0)
        'time: input 10 %, lookup 20 %, dense 40 %, update 20 %, other 10 %'
        """
        if seconds <= 0:
            return 'time: none'
        parts = {name: getattr(self, name) for name in PHASES}
        if not with_tables:
            parts['dense'] += parts.pop('lookup') + parts.pop('update')
        parts['other'] = self.other(seconds)
        return 'time: ' + ', '.join(
            f'{name} {100 * part / seconds:.0f} %' for name, part in parts.items())

    def other(self, seconds: float) -> float:
        """Returns what hooks and the loop took of all seconds."""
        return max(0.0, seconds - sum(getattr(self, name) for name in PHASES))


@dataclasses.dataclass(slots=True)
class RunReport:
    """The report of one `train`, `evaluate` or `predict`.

    Attributes:
      verb: `'train'`, `'evaluate'` or `'predict'`.
      batch_size: samples of all cores per step; 0 if that is not known.
      kernels: the engine of the tables, `'native'` or `'stock'`; empty without tables.
      trainer: the class of a plain Estimator, which this package does not run; otherwise empty.
      directory: the directory of a training's checkpoints; empty if it saves nothing.
      steps: steps completed.
      first_step: the global step before the first of them.
      seconds: the time of all steps.
      start: the seconds from the beginning to the end of the first run of the session, whose steps
        rates leave out; 0 until then.
      skipped_steps: steps that changed no table, since gradients were not finite.
      refused: by table the number of skipped steps in which its gradients were not finite.
      time: the seconds by phase.
      answers: says how fast the tasks of a cluster answered; empty without a cluster.
      cores: replicas of the model.
      disk: what a run with tables on a disk has read and written; otherwise empty.
    """

    verb: str
    batch_size: int
    kernels: str = ''
    trainer: str = ''
    directory: str = ''
    steps: int = 0
    first_step: int = 0
    seconds: float = 0.0
    start: float = 0.0
    skipped_steps: int = 0
    refused: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    time: TimeSplit = dataclasses.field(default_factory=TimeSplit)
    answers: str = ''
    cores: int = 1
    disk: str = ''
    _began: float = dataclasses.field(
        default_factory=lambda: time.monotonic(), repr=False, compare=False)
    _first: tuple[int, float, TimeSplit] = dataclasses.field(
        default=(0, 0.0, TimeSplit()), repr=False, compare=False)
    _counted: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    _sums: Any = dataclasses.field(default=0, repr=False, compare=False)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, repr=False)

    @property
    def counts(self) -> dict[str, IdCounts]:
        """The counts of ids by feature; complete when the run is over."""
        with self._lock:
            return {name: IdCounts(*numbers)
                    for name, numbers in zip(self._counted, np.broadcast_to(
                        self._sums, [len(self._counted), 4]).tolist(), strict=True)}

    def add_counts(self, features: tuple[str, ...], counts: np.ndarray, seconds: float) -> None:
        """Adds the counts of ids of a step; any thread may call it.

        Args:
          features: names; the same at every call.
          counts: int64 `[len(features), 4]`, the numbers of `IdCounts`.
          seconds: the time to draw the batch, divided by the number of threads that draw.
        """
        with self._lock:
            self._counted, self._sums = features, self._sums + counts
            self.time.enqueue += seconds

    def add_run(self, seconds: float) -> None:
        """Counts a run of the session, whose steps were counted; the first ends the start."""
        self.seconds += seconds
        if self.steps and not self.start:
            self.start = time.monotonic() - self._began
            self._first = self.steps, self.seconds, dataclasses.replace(self.time)

    def timed(self) -> tuple[int, float, TimeSplit]:
        """Returns the steps after the first run, their seconds and phases; all, if it was one."""
        steps, seconds, split = self._first
        if self.steps <= steps or self.seconds <= seconds:
            return self.steps, self.seconds, self.time
        return self.steps - steps, self.seconds - seconds, self.time.since(split)

    def add_skipped(self, step: int, tables: Sequence[str]) -> None:
        """Counts a step that changed no table, and tells the user of the first one.

        It began at global step `step`; `tables` are those with gradients that are not finite.
        """
        self.skipped_steps += 1
        self.refused.update(tables)
        if self.skipped_steps == 1:
            tf.logging.warning('%s', Problem(
                'W801', f'table {quoted(tables)}', 'the gradients of its rows should be finite',
                f'others at global step {step}', 'No table was changed by this step; more such '
                'steps are counted. What the model trains itself is not kept from them.'))

    def tell_that_nothing_is_saved(self) -> None:
        """Warns that this training leaves no checkpoint."""
        self.directory = ''
        announce(str(Problem(
            'W007', 'RunConfig', 'this training leaves no checkpoint',
            'save_checkpoints_steps=None and save_checkpoints_secs=None',
            'Set one of them to keep what is trained.')))

    def last_line(self) -> str:
        """Returns the last line of the run: steps, examples/s and ids that were not looked up."""
        by = f' by {self.trainer}' if self.trainer else ''
        _, seconds, split = self.timed()
        start = f', start {self.start:.1f} s' if seconds < self.seconds else ''
        parts = [f'{self.verb}: {counted(self.steps, "step")}{by}, {rate_of([self])}{start}'
                 + (f', {self.kernels} kernels' if self.kernels else '')]
        if not self.trainer:
            parts.append(split.shares(seconds, with_tables=bool(self.kernels)))
            if self.cores > 1 and start and split.other(seconds) > seconds / 2:
                parts.append(f'steps are small for {self.cores} cores: fewer would be faster')
        elif self.directory:
            parts.append(f'saved in {self.directory}')
        if self.kernels:
            parts.append(self._ids())
        parts += filter(None, (self.disk, self.answers))
        return '; '.join(parts)

    def _ids(self) -> str:
        """Returns the part of that line on ids not looked up and on skipped steps."""
        lost = self.not_looked_up()
        counts = ', '.join(
            f'ids {kind.replace("_", " ")}: ' + (', '.join(
                f'{feature} {count}' for feature, count in lost[kind].items()) or 'none')
            for kind in KINDS if lost[kind] or kind == 'missing')
        if self.skipped_steps:
            tables = ', '.join(f'{name} {count}' for name, count in sorted(self.refused.items()))
            counts += (f', steps that changed no table: {self.skipped_steps} '
                       f'(gradients not finite: {tables})')
        return counts

    def not_looked_up(self) -> dict[str, dict[str, int]]:
        """Counts the ids that were missing, truncated or out of range, by kind and feature."""
        counts = sorted(self.counts.items())
        return {kind: {name: getattr(of_feature, kind) for name, of_feature in counts
                       if getattr(of_feature, kind)} for kind in KINDS}

    def finish(self) -> None:
        """Tells the user that the run is over, and keeps this report for `reports`."""
        _reports.append(self)
        announce(self.last_line())


class DiskUse:
    """Counts what this process reads from disks and writes to them, from its making on."""

    def __init__(self) -> None:
        """Counts from now on."""
        self._before = self._bytes()

    @staticmethod
    def _bytes() -> list[int]:
        found = re.findall(r'^(?:read|write)_bytes: (\d+)$', text_of('/proc/self/io'), re.MULTILINE)
        return [int(count) for count in found]

    def per_step(self, steps: int) -> str:
        """Says it in words; empty without steps, or where the system does not count."""
        moved = [after - before for before, after in zip(self._before, self._bytes())]
        if len(moved) < 2 or not steps:
            return ''
        read, written = (bytes_text(count / steps) for count in moved)
        return f'disk per step, first values and checkpoints too: {read} read, {written} written'


def rate_of(runs: Sequence[RunReport]) -> str:
    """Returns examples per second of runs, or steps per second if a batch size is not known."""
    timed = [run.timed() for run in runs]
    seconds = sum(seconds for _, seconds, _ in timed)
    if all(run.batch_size for run in runs):
        examples = sum(steps * run.batch_size for (steps, *_), run in zip(timed, runs))
        return f'{_per_second(examples, seconds):,.0f} examples/s'
    return f'{_per_second(sum(steps for steps, *_ in timed), seconds):,.1f} steps/s'


class RateHook(tf.train.SessionRunHook):
    """Logs `global_step/sec` and `examples/sec`, as the original does, and writes summaries."""

    def __init__(self, report: RunReport, every_n_steps: int, every_n_secs: float | None,
                 output_dir: str | None, global_step: tf.Tensor):
        """Logs every so many steps, or seconds unless these are `None`, at the end of a loop.

        Summaries, also of the counts of ids in the report, are written if there is an `output_dir`.
        """
        self._report = report
        self._every_n_steps, self._every_n_secs = every_n_steps, every_n_secs
        self._output_dir = output_dir
        self._global_step = global_step
        self._last_step, self._last_time, self._last_skipped = 0, 0.0, 0
        self._last_split = TimeSplit()

    def after_create_session(self, session: tf.Session, coord: object) -> None:
        """Starts the clock."""
        self._last_step, self._last_time = session.run(self._global_step), time.monotonic()
        self._last_split = dataclasses.replace(self._report.time)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: object) -> None:
        """Logs if enough steps have passed."""
        step, now = run_context.session.run(self._global_step), time.monotonic()
        is_early = (step - self._last_step < self._every_n_steps if self._every_n_secs is None
                    else now - self._last_time < self._every_n_secs)
        if is_early or step == self._last_step:
            return
        steps_per_second = (step - self._last_step) / max(now - self._last_time, 1e-9)
        values = {'global_step/sec': steps_per_second,
                  'examples/sec': steps_per_second * self._report.batch_size}
        for tag, value in values.items():
            tf.logging.info('%s: %g', tag, value)
        split = self._report.time.since(self._last_split)
        steps = step - self._last_step
        self._last_step, self._last_time = step, now
        self._last_split = dataclasses.replace(self._report.time)
        skipped = self._skipped()
        if self._output_dir is None:
            return
        counts = {f'tpu_embedding/ids_{kind}/{feature}': count
                  for kind, of_kind in self._report.not_looked_up().items()
                  for feature, count in of_kind.items()}
        counts.update(skipped)
        counts.update({f'tpu_embedding/secs_per_step/{name}': seconds / steps
                       for name, seconds in dataclasses.asdict(split).items()})
        tf.summary.FileWriterCache.get(self._output_dir).add_summary(tf.Summary(value=[
            tf.Summary.Value(tag=tag, simple_value=value)
            for tag, value in {**values, **counts}.items()]), step)

    def _skipped(self) -> dict[str, int]:
        """Returns the summary of skipped steps, if there are any; warns of those after the first.

        The last step of a loop is counted in the next loop, since the hook that counts is last.
        """
        skipped = self._report.skipped_steps
        if skipped > max(self._last_skipped, 1):
            tf.logging.warning('So far %d steps changed no table: gradients were not finite.',
                               skipped)
        self._last_skipped = skipped
        return {'tpu_embedding/steps_skipped': skipped} if skipped else {}


_MOST_NAMED = 3
_own_loops: list[str] = []


def add_own_loop(what: str) -> None:
    """Remembers that a graph of the script's own trains tables; its steps are not counted."""
    if what not in _own_loops:
        _own_loops.append(what)


def totals() -> str:
    """Returns steps, rates, directories of models, times, and ids that were not looked up.

    A script may also train by operations of TensorFlow alone, which this line does not know of.
    """
    in_functions = [one for one in step_clock.totals() if one.trained.steps or one.looked_up.steps]
    batch_sizes = [one.batch_size for one in in_functions]
    parts = [*_by_verb(reports()),
             *_in_functions('train', batch_sizes, [one.trained for one in in_functions]),
             *_in_functions('evaluate or predict', batch_sizes,
                            [one.looked_up for one in in_functions])]
    parts += [f'{what} in a graph of the script\'s own, whose steps are not counted'
              for what in _own_loops]
    runs = [report for report in reports() if not report.trainer]
    kernels = sorted({run.kernels for run in runs} - {''} | {one.kernels for one in in_functions})
    if kernels:
        parts.append(f'{" and ".join(kernels)} kernels')
    parts += _of_tables(runs)
    return '; '.join(parts) or 'nothing was trained by an Estimator or a TPUEmbedding'


def _by_verb(runs: Sequence[RunReport]) -> Iterator[str]:
    """Yields steps, rate and directories for each verb and each class of plain Estimators."""
    kinds = dict.fromkeys((report.verb, report.trainer) for report in runs)
    for verb, trainer in sorted(kinds, key=lambda kind: kind[0], reverse=True):
        same = [report for report in runs if (report.verb, report.trainer) == (verb, trainer)]
        by = f' by {trainer}' if trainer else ''
        places = list(dict.fromkeys(report.directory for report in same if report.steps))
        yield (f'{verb} {counted(sum(report.steps for report in same), "step")}{by}, '
               f'{rate_of(same)}' + (_where(places) if verb == 'train' else ''))


def _where(places: Sequence[str]) -> str:
    if not any(places):
        return ', nothing saved' if places else ''
    named = [place for place in places if '://' in place or tf.io.gfile.isdir(place)]
    if not named:
        return ''  # The script has deleted it.
    others = len(named) - _MOST_NAMED
    return f', {"saved" if all(places) else "some of it saved"} in ' + (
        ', '.join(named[:_MOST_NAMED])) + (f' and {others} more' if others > 0 else '')


def _in_functions(verb: str, batch_sizes: Sequence[int], figures: Sequence[Figures]
                  ) -> Iterator[str]:
    """Yields the steps of one kind, for every `TPUEmbedding` of TF2 that made some, and their rate.

    The first step of a stretch is not timed, so a single step has no rate.
    """
    steps = [one.steps for one in figures if one.steps]
    if not steps:
        return
    timed = [RunReport(verb, batch_size, steps=one.timed, seconds=one.seconds)
             for batch_size, one in zip(batch_sizes, figures) if one.timed]
    shown = ', '.join(map(str, steps[:_MOST_NAMED])) + (
        ', ...' if len(steps) > _MOST_NAMED else '')
    what = (f'{counted(steps[0], "step")} by TPUEmbedding' if len(steps) == 1
            else f'{shown} steps by {counted(len(steps), "TPUEmbedding")}')
    yield f'{verb} {what}' + (f', {rate_of(timed)}' if timed else '')


def _of_tables(runs: Sequence[RunReport]) -> Iterator[str]:
    """Yields the phases of the time of runs, and counts of ids if the runs had tables."""
    if not runs:
        return
    has_tables = any(report.kernels for report in runs)
    timed = [report.timed() for report in runs]
    phases = zip(*[dataclasses.astuple(split) for *_, split in timed])
    yield TimeSplit(*map(sum, phases)).shares(
        sum(seconds for _, seconds, _ in timed), with_tables=has_tables)
    for kind in KINDS if has_tables else ():
        count = sum(getattr(counts, kind) for report in runs for counts in report.counts.values())
        yield f'ids {kind.replace("_", " ")}: {count:,}'
