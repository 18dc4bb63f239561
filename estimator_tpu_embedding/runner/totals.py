"""Sums up in one line all trainings, evaluations and predictions of this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow.compat.v1 as tf

from ..errors import counted
from ..hosts import update_counts
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
    parts = [*_by_verb(reports()), *_in_functions()]
    parts += [f'{what} in a graph of the script\'s own, whose steps are not counted'
              for what in _own_loops]
    parts += _of_tables([report for report in reports() if not report.trainer])
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


def _in_functions() -> Iterator[str]:
    """Yields the steps of every `TPUEmbedding` of TF2 that trained."""
    steps = [number for number in update_counts.numbers() if number]
    if len(steps) == 1:
        yield f'train {counted(steps[0], "step")} by TPUEmbedding'
    elif steps:
        shown = ', '.join(map(str, steps[:_MOST_NAMED])) + (
            ', ...' if len(steps) > _MOST_NAMED else '')
        yield f'train {shown} steps by {counted(len(steps), "TPUEmbedding")}'


def _of_tables(runs: Sequence[RunReport]) -> Iterator[str]:
    """Yields the phases of the time of runs, and counts of ids if the runs had tables."""
    if not runs:
        return
    kernels = sorted({report.kernels for report in runs} - {''})
    if kernels:
        yield f'{" and ".join(kernels)} kernels'
    yield sum_of([report.time for report in runs]).shares(
        sum(report.seconds for report in runs), with_tables=bool(kernels))
    for kind in KINDS if kernels else ():
        count = sum(getattr(counts, kind) for report in runs for counts in report.counts.values())
        yield f'ids {kind.replace("_", " ")}: {count:,}'
