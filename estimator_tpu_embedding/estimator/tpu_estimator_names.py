"""Holds the other names of the original's module `tpu_estimator` that scripts and libraries use.

A logger and hooks; private names that derived estimators import. A model_fn calls
`call_computation` and its kin to run itself on a TPU, in exports with API version 2. In the TPU
graph of an export they are the original's. In other graphs they call the model as it is, and a
`BatchConfig` has no effect.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf, defaults
from ..errors import Problem
from ..runner.core_batches import filled
from ..runner.training import StopAtStep
from . import original_runner


class PeriodicLogger:
    """Logs at most once in a number of seconds."""

    def __init__(self, seconds: float):
        """Logs the first message, and one again when `seconds` have passed since the last."""
        self._seconds = seconds
        self._next = 0.0

    def log(self, msg: str, *args: Any, **kw: Any) -> None:
        """Logs as `tf.logging.info` does, unless it logged too short a time ago."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._seconds
            tf.logging.info(msg, *args, **kw)


class ExamplesPerSecondHook(tf.train.StepCounterHook):
    """Logs steps and examples per second, and writes summaries of them.

    A TPUEstimator does so by itself; this is for other loops.
    """

    _tags: Sequence[str] = ('global_step/sec', 'examples/sec')

    def __init__(self, batch_size: int, every_n_steps: int | None = 100,
                 every_n_secs: float | None = None, output_dir: str | None = None,
                 summary_writer: Any = None):
        """Counts `batch_size` examples per step; for the others see `StepCounterHook`."""
        self._batch_size = batch_size
        super().__init__(every_n_steps=every_n_steps, every_n_secs=every_n_secs,
                         output_dir=output_dir, summary_writer=summary_writer)

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        """Logs and writes; `StepCounterHook` calls it when its time has come."""
        steps = elapsed_steps / elapsed_time
        rates = {'global_step/sec': steps, 'examples/sec': steps * self._batch_size}
        for tag in self._tags:
            tf.logging.info('%s: %g', tag, rates[tag])
        if self._summary_writer is not None:
            self._summary_writer.add_summary(tf.Summary(value=[
                tf.Summary.Value(tag=tag, simple_value=rates[tag]) for tag in self._tags
            ]), global_step)


class InstallSignalHandlerHook(tf.train.SessionRunHook):
    """Makes Ctrl-C end the run at once, which it does here without any hook."""


class TPUInfeedOutfeedSessionHook(tf.train.SessionRunHook):
    """The hook that feeds the cores while a job trains.

    A subclass that is given to `TPUConfig(experimental_feed_hook=...)` stands in its place. It is
    made with the arguments below, and its methods of a `SessionRunHook` are called. A method that
    it overrides must call the method of this class.

    `self._dequeue_ops` holds the stopping signals of all cores under their name, joined along the
    first dimension. `before_run` may fetch them; `after_run` then has the values of the last step
    of the loop.

    The runner owns the threads that draw batches: methods for threads cannot be overridden.
    """

    def __init__(self, ctx: Any, enqueue_ops: Any, dequeue_ops: Mapping[str, Any],
                 tpu_compile_op: Any, run_infeed_loop_on_coordinator: bool = True,
                 rendezvous: Any = None, master: str | None = None, session_config: Any = None,
                 tpu_init_ops: Any = None, outfeed_every_n_steps: int = 1):
        """Stores what the runner hands over; the arguments after the third are not used.

        `ctx` is a `TPUContext`, as a model_fn gets it. `enqueue_ops`, here a hook, feeds the cores.
        It must be handed on.
        """
        self._enqueue_ops = enqueue_ops
        self._dequeue_ops = dequeue_ops

    @staticmethod
    def get_stopping_signals_and_name(features: Any) -> tuple[Any, str | None]:
        """Returns tensors that tell of the end of data, by name, and a name for them; here none.

        Args:
          features: the features of one core, as model_fn gets them.
        """
        return None, None

    def begin(self) -> None:
        """Prepares to feed."""
        self._enqueue_ops.begin()

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Starts the threads that feed."""
        self._enqueue_ops.after_create_session(session, coord)

    def end(self, session: tf.Session) -> None:
        """Ends the threads that feed."""
        self._enqueue_ops.end(session)


class _TPUStopAtStepHook(StopAtStep):
    """Ends a training; a derived estimator returns it from `_convert_train_steps_to_hooks`."""

    def __init__(self, iterations_per_loop_counter: Any, num_steps: int | None = None,
                 final_step: int | None = None):
        """Stops after `num_steps`, or at the global step `final_step`; one of them is given.

        `iterations_per_loop_counter` is `(value, unit)`. It is checked alone, since the runner
        takes the value from the `TPUConfig`.
        """
        if num_steps is None and final_step is None:
            raise ValueError('One of `num_steps` or `final_step` must be specified.')
        if num_steps is not None and final_step is not None:
            raise ValueError('Only one of `num_steps` or `final_step` can be specified.')
        if iterations_per_loop_counter.unit not in ('seconds', 'count'):
            raise ValueError('Only `count` or `seconds` are accepted as the '
                             '`iterations_per_loop_counter.unit')
        super().__init__(num_steps, final_step, defaults.current().step_limit)


class _InputsWithStoppingSignals:
    """The batches of a dataset, each with signals that say whether the data has ended."""

    def __init__(self, dataset: tf.data.Dataset, batch_size: int, add_padding: bool = False,
                 num_invocations_per_step: int = 1):
        """Lets batches follow that ask to stop: one, or with more invocations per step `2 n - 1`.

        `dataset` is of features, or `(features, labels)`. With `add_padding` smaller batches are
        filled with zeros, and a mask shows where.
        """
        ends = dataset.take(1).map(self.insert_stopping_signal(True, batch_size, add_padding))
        if num_invocations_per_step > 1:
            ends = ends.repeat(2 * num_invocations_per_step - 1).map(self._all_padding)
        self._iterator = tf.data.make_initializable_iterator(dataset.map(
            self.insert_stopping_signal(False, batch_size, add_padding)).concatenate(ends))
        self._drawn: dict[str, Any] | None = None

    def dataset_initializer(self) -> tf.Operation:
        """Returns the operation that begins with the first batch."""
        return self._iterator.initializer

    def features_and_labels(self) -> tuple[Any, Any]:
        """Draws a batch; its labels are `None` if there are none."""
        if self._drawn is not None:
            raise RuntimeError('Internal Error: The previous inputs have not been properly '
                               'consumed. First call features_and_labels, then call signals.')
        self._drawn = self._iterator.get_next()
        return self._drawn['features'], self._drawn.get('labels')

    def signals(self) -> dict[str, tf.Tensor]:
        """Returns `'stopping'`, bool `[B, 1]`, and with padding `'padding_mask'`, int32 `[B]`."""
        if self._drawn is None:
            raise RuntimeError('Internal Error: The current inputs have not been properly '
                               'generated. First call features_and_labels, then call signals.')
        drawn, self._drawn = self._drawn, None
        signals: dict[str, tf.Tensor] = drawn['signals']
        return signals

    @staticmethod
    def insert_stopping_signal(stop: bool, batch_size: int, add_padding: bool = False
                               ) -> Callable[..., dict[str, Any]]:
        """Returns a function for `map` that gives each batch its signals."""

        def insert(*element: Any) -> dict[str, Any]:
            signals = {'stopping': tf.fill([batch_size, 1], stop)}
            if add_padding:
                rows = tf.shape(tf.nest.flatten(element)[0])[0]
                element = filled(element, batch_size)
                signals['padding_mask'] = tf.cast(tf.range(batch_size) >= rows, tf.int32)
            return {**dict(zip(('features', 'labels'), element)), 'signals': signals}

        return insert

    @staticmethod
    def _all_padding(batch: dict[str, Any]) -> dict[str, Any]:
        signals = {name: tf.ones_like(value) if name == 'padding_mask' else value
                   for name, value in batch['signals'].items()}
        return {**batch, 'signals': signals}


def _export_output_to_tensors(export_output: Any) -> list[Any]:
    """Returns the tensors of an `ExportOutput`; a classification has scores, then classes."""
    outputs = _legacy.load().export
    if isinstance(export_output, outputs.ClassificationOutput):
        return [export_output.scores, export_output.classes]
    if isinstance(export_output, outputs.RegressionOutput):
        return [export_output.value]
    if isinstance(export_output, outputs.PredictOutput):
        return list(export_output.outputs.values())
    raise ValueError('`export_output` must be have type `ClassificationOutput`, '
                     f'`RegressionOutput`, or `PredictOutput`; got {export_output}.')


class BatchConfig(NamedTuple):
    """The batching of a TPU graph of an export."""

    num_batch_threads: int
    max_batch_size: int
    batch_timeout_micros: int
    allowed_batch_sizes: list[int] | None
    max_enqueued_batches: int = 100


def call_computation(computation_inputs: Any, computation: Callable[[Any], Any],
                     batch_config: BatchConfig | None = None) -> list[Any]:
    """Calls a computation.

    Args:
      computation_inputs: a tensor or dict of tensors.
      computation: called with the inputs; returns a tensor, or a list or tuple of tensors.
      batch_config: how a TPU graph makes batches of requests.

    Returns:
      The tensors that the computation returned, as a list.

    Raises:
      TypeError: if it returned something else.
    """
    if _tf.is_inference_on_tpu():
        rewritten: list[Any] = original_runner.original().call_computation(
            computation_inputs, computation, batch_config)
        return rewritten
    _say_of_batches(batch_config)
    outputs = computation(computation_inputs)
    listed = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    if isinstance(outputs, dict):
        raise TypeError(str(Problem(
            'E519', 'computation', 'it must return a tensor, or a list or tuple of tensors',
            f'a dict with the keys {sorted(outputs)}', 'Return list(outputs.values()).')))
    return [tf.convert_to_tensor(output) for output in listed]


def inference_on_tpu(computation: Callable[..., Any], inputs_to_tpu: Sequence[Any],
                     num_batch_threads: int, max_batch_size: int | None,
                     batch_timeout_micros: int,
                     allowed_batch_sizes: list[int] | None = None,
                     max_enqueued_batches: int = 100) -> list[Any]:
    """Calls a computation with a list of tensors as its arguments, as `call_computation` does.

    The other arguments are those of a `BatchConfig`. A `max_batch_size` of 0 or `None` asks for no
    batches.
    """
    if _tf.is_inference_on_tpu():
        rewritten: list[Any] = original_runner.original().inference_on_tpu(
            computation, inputs_to_tpu, num_batch_threads, max_batch_size, batch_timeout_micros,
            allowed_batch_sizes, max_enqueued_batches)
        return rewritten
    batches = BatchConfig(num_batch_threads, max_batch_size, batch_timeout_micros,
                          allowed_batch_sizes, max_enqueued_batches) if max_batch_size else None
    return call_computation(inputs_to_tpu, lambda inputs: computation(*inputs), batches)


def model_fn_inference_on_tpu(model_fn: Callable[..., Any], features: Any, labels: Any = None,
                              config: Any = None, params: Any = None,
                              batch_config: BatchConfig | None = None) -> Any:
    """Calls a model_fn with mode PREDICT, and with the other arguments that it takes.

    Returns:
      The `EstimatorSpec` or `TPUEstimatorSpec` that model_fn returned.
    """
    if _tf.is_inference_on_tpu():
        return original_runner.original().model_fn_inference_on_tpu(
            model_fn, features, labels, config, params, batch_config)
    _say_of_batches(batch_config)
    given = {'labels': labels, 'mode': _legacy.load().ModeKeys.PREDICT, 'config': config,
             'params': params}
    taken = inspect.signature(model_fn).parameters
    return model_fn(features, **{name: given[name] for name in given if name in taken})


def _say_of_batches(batch_config: BatchConfig | None) -> None:
    if batch_config is not None:
        tf.logging.info('%s has no effect: the graph for the CPU leaves batches to the server.',
                        batch_config)
