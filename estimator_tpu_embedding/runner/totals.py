"""Sums up in one line all trainings, evaluations and predictions of this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow.compat.v1 as tf

from ..errors import counted
from ..hosts import step_clock
from ..hosts.step_clock import Figures
from .measures import sum_of
from .progress import KINDS, RunReport, rate_of, reports

_MOST_NAMED = 3
_own_loops: list[str] = []


def add_own_loop(what: str) -> None:
    """Remembers that a graph of the script's own trains tables; its steps are not counted.

    Args:
      what: describes the trainer.
    """
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
    yield sum_of([split for *_, split in timed]).shares(
        sum(seconds for _, seconds, _ in timed), with_tables=has_tables)
    for kind in KINDS if has_tables else ():
        count = sum(getattr(counts, kind) for report in runs for counts in report.counts.values())
        yield f'ids {kind.replace("_", " ")}: {count:,}'
