"""Measures where the time of a step goes, and makes summaries of the tables for TensorBoard."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..core.names import legal
from ..core.plan import Plan
from ..hosts.backend import Activations, Backend, LookupReceipt

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
        """Returns the seconds that were added after the state `before`.

        >>> TimeSplit(input=3.0, dense=2.0).since(TimeSplit(input=1.0))
        TimeSplit(input=2.0, lookup=0.0, dense=2.0, update=0.0, enqueue=0.0)
        """
        return TimeSplit(*[now - then for now, then in zip(
            dataclasses.astuple(self), dataclasses.astuple(before))])

    def shares(self, seconds: float, *, with_tables: bool = True) -> str:
        """Returns the phases in percent of all seconds; hooks and the loop took the rest.

        Args:
          with_tables: whether the run looked anything up. Otherwise a step is its dense phase.

        >>> TimeSplit(input=1.0, lookup=2.0, dense=4.0, update=2.0).shares(10.0)
        'time: input 10 %, lookup 20 %, dense 40 %, update 20 %, other 10 %'
        >>> TimeSplit(input=1.0, dense=6.0).shares(10.0, with_tables=False)
        'time: input 10 %, dense 60 %, other 30 %'
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


def sum_of(splits: Sequence[TimeSplit]) -> TimeSplit:
    """Returns the sum of several time splits.

    >>> sum_of([TimeSplit(input=1.0), TimeSplit(input=2.0, update=1.0)])
    TimeSplit(input=3.0, lookup=0.0, dense=0.0, update=1.0, enqueue=0.0)
    """
    return TimeSplit(*map(sum, zip(*map(dataclasses.astuple, splits)))) if splits else TimeSplit()


class Measured(NamedTuple):
    """The parts of a step's graph that its clock and its summaries read.

    Attributes:
      looked_up: an operation; see `clock_of`.
      trained: an operation; see `clock_of`.
      backend: the engine, or `None`.
      receipts: of the look-ups, per core; empty without an engine.
      gradients: in training the gradients of the activations, per core.
    """

    looked_up: tf.Operation
    trained: tf.Operation
    backend: Backend | None
    receipts: Sequence[LookupReceipt]
    gradients: Sequence[Activations]


def clock_of(looked_up: tf.Operation, trained: tf.Operation, done: tf.Operation) -> tf.Tensor:
    """Returns when a step began, had looked up, had trained and was done.

    Returns:
      float64 `[4]`, in seconds.
    """
    times = [tf.timestamp()]
    for ended in (looked_up, trained, done):
        with tf.control_dependencies([times[-1], ended]):
            times.append(tf.timestamp())
    return tf.stack(times)


def summarize_tables(plan: Plan, measured: Measured) -> None:
    """Makes summaries of a step for each table.

    Their names begin with `tpu_embedding/<table>/`:

    - `rows_touched`: the number of distinct rows of the step.
    - `activation_norm` and `gradient_norm`: Euclidean norms over all features and cores.
      Activations of samples without an id count, and so do their gradients.

    They cost nothing in steps whose summaries are not written.
    """
    assert measured.backend is not None, 'a plan has an engine'
    batches = [measured.backend.batches(receipt) for receipt in measured.receipts]
    for table in plan.tables:
        names = [feature.name for feature in plan.features_of(table.name)]
        ids = [of_core[name].ids for of_core in batches for name in names]
        values: Mapping[str, tf.Tensor] = {
            'rows_touched': tf.size(tf.unique(tf.concat(ids, 0)).y),
            'activation_norm': tf.linalg.global_norm([
                receipt.activations[name] for receipt in measured.receipts for name in names]),
            'gradient_norm': tf.linalg.global_norm([
                gradients[name] for gradients in measured.gradients for name in names])}
        for name, value in values.items():
            tf.summary.scalar(f'tpu_embedding/{legal(table.name)}/{name}', value)
