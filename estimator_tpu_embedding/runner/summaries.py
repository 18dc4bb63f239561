"""Writes summaries, and drops those that cannot be written, so that training goes on."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint.storage import require_free_block
from ..core.names import legal
from ..core.plan import Plan
from ..errors import Problem, shown
from .step_graph import StepGraph

FAILURES = (tf.errors.OpError, OSError, RuntimeError)
"""Errors of TensorFlow when it cannot write an event; a RuntimeError if its thread has failed."""


def warn(directory: str, error: Exception) -> None:
    """Says once that a directory gets no more summaries."""
    tf.logging.warning('%s', Problem(
        'W806', f'summaries in {shown(directory, 200)}', 'event files should be writable',
        shown(error, 200), 'What is run goes on without them; checkpoints are written as ever.'))


@contextlib.contextmanager
def survived(directory: str) -> Iterator[None]:
    """Lets the body, which writes event files into a directory, fail with a warning."""
    try:
        yield
    except FAILURES as error:
        warn(directory, error)


class SurvivingWriter:
    """Stands for the event writer of a `tf.summary.FileWriter`; its errors end nothing.

    On a full disk TensorFlow loses some events without a word. For others its next call raises the
    error of its thread, and that may be a call of the hook that saves checkpoints. After that
    TensorFlow drops all events silently. So this writer looks for room on the disk itself.
    """

    def __init__(self, writer: Any):
        self._writer, self.has_failed = writer, False

    def get_logdir(self) -> str:
        """The directory."""
        return str(self._writer.get_logdir())

    def add_event(self, event: Any) -> None:
        """Writes an event some time later."""
        self._try(self._require_room, functools.partial(self._writer.add_event, event))

    def flush(self) -> None:
        """Waits until all events are written."""
        self._try(self._writer.flush, self._require_room)

    def close(self) -> None:
        """Waits like `flush`, and closes the file in any case."""
        self.flush()
        with contextlib.suppress(*FAILURES):
            self._writer.close()

    def reopen(self) -> None:
        """Begins another file."""
        self.has_failed = False
        self._writer.reopen()

    def _require_room(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # It may be a URL.
            require_free_block(self.get_logdir())

    def _try(self, *calls: Callable[[], None]) -> None:
        try:
            for call in () if self.has_failed else calls:
                call()
        except FAILURES as error:
            self.has_failed = True
            warn(self.get_logdir(), error)


class SummariesSurvive(tf.train.SessionRunHook):
    """Keeps errors of event files from ending a run; comes after all hooks that write them."""

    def begin(self) -> None:
        """Guards the writers that the hooks share by directory."""
        for writer in _tf.cached_summary_writers():
            if not isinstance(writer.event_writer, SurvivingWriter):
                writer.event_writer = SurvivingWriter(writer.event_writer)
            elif writer.event_writer.has_failed:  # In a run before this one.
                writer.event_writer.reopen()


class SummaryWriters(tf.train.SessionRunHook):
    """Opens the writers of V2 summaries with every session, and flushes them at the end.

    Each run of the session runs `operations`, if there are any.
    """

    def __init__(self, operations: Sequence[Any] = ()):
        self._operations = list(operations)
        self._open: list[tf.Operation] = []
        self._flush: list[tf.Operation] = []

    def begin(self) -> None:
        """Finds the writers of the default graph."""
        self._open = _tf.summary_writer_initializers()
        self._flush = [tf.raw_ops.FlushSummaryWriter(writer=each.inputs[0])
                       for each in self._open]

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Opens them."""
        session.run(self._open)

    def before_run(self, run_context: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        """Asks for the operations."""
        return tf.train.SessionRunArgs(self._operations)

    def end(self, session: tf.Session) -> None:
        """Flushes them."""
        session.run(self._flush)


_LAYOUT = {
    'step': {'seconds by phase': 'tpu_embedding/secs_per_step/.*', 'examples/sec': 'examples/sec',
             'steps/sec': 'global_step/sec', 'loss': 'loss'},
    'tables': {'distinct rows': '.*/rows_touched', 'norm of activations': '.*/activation_norm',
               'norm of gradients': '.*/gradient_norm'},
    'ids that were not looked up': {'missing': 'tpu_embedding/ids_missing/.*',
                                    'truncated': 'tpu_embedding/ids_truncated/.*',
                                    'out of range': 'tpu_embedding/ids_out_of_range/.*'},
    'checkpoints': {'seconds to save': 'tpu_embedding/checkpoint_secs'}}
"""The charts of TensorBoard's custom scalars: by group and title a pattern of tags."""


def write_layout(directory: str) -> None:
    """Writes the layout of TensorBoard's custom scalars, if TensorBoard is installed."""
    try:
        from tensorboard.plugins.custom_scalar import layout_pb2, summary
    except ImportError:
        return
    layout = layout_pb2.Layout(category=[layout_pb2.Category(title=group, chart=[
        layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=[pattern]))
        for title, pattern in charts.items()]) for group, charts in _LAYOUT.items()])
    with survived(directory):
        tf.summary.FileWriterCache.get(directory).add_summary(
            summary.pb(layout).SerializeToString())


def summarize_save(directory: str, step: int, seconds: float) -> None:
    """Writes how long a checkpoint took, at once: the last one may end a training."""
    with survived(directory):
        writer = tf.summary.FileWriterCache.get(directory)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(
            tag='tpu_embedding/checkpoint_secs', simple_value=seconds)]), step)
        writer.flush()


def summarize_tables(plan: Plan, step: StepGraph) -> None:
    """Makes summaries of a step for each table.

    Their names begin with `tpu_embedding/<table>/`:

    - `rows_touched`: the number of distinct rows of the step.
    - `activation_norm` and `gradient_norm`: Euclidean norms over all features and cores.
      Activations of samples without an id count, and so do their gradients.

    They cost nothing in steps whose summaries are not written.
    """
    assert step.backend is not None, 'a plan has an engine'
    touched = step.backend.rows_touched(step.receipts)
    for table in plan.tables:
        names = [feature.name for feature in plan.features_of(table.name)]
        values: Mapping[str, tf.Tensor] = {
            'rows_touched': touched[table.name],
            'activation_norm': tf.linalg.global_norm([
                receipt.activations[name] for receipt in step.receipts for name in names]),
            'gradient_norm': tf.linalg.global_norm([
                gradients[name] for gradients in step.gradients for name in names])}
        for name, value in values.items():
            tf.summary.scalar(f'tpu_embedding/{legal(table.name)}/{name}', value)
