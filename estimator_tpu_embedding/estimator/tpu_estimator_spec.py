"""Holds `TPUEstimatorSpec`, the value that a model_fn returns to a TPUEstimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf
from ..runner import host_calls
from ..runner.job import ModelOutput
from ..runner.summaries import SummaryWriters

_HostCall = tuple[Callable[..., Any], Any]


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metrics: _HostCall | None
    export_outputs: Mapping[str, Any] | None
    scaffold_fn: Callable[[], tf.train.Scaffold] | None
    host_call: _HostCall | None
    training_hooks: Sequence[tf.train.SessionRunHook] | None
    evaluation_hooks: Sequence[tf.train.SessionRunHook] | None
    prediction_hooks: Sequence[tf.train.SessionRunHook] | None


class TPUEstimatorSpec(_Fields):
    """The value that a model_fn returns to a TPUEstimator.

    It is `tf.estimator.EstimatorSpec` with two differences. `eval_metrics`, a pair of a function
    and the tensors that it takes, replaces `eval_metric_ops`. `scaffold_fn` replaces `scaffold`.
    The function of `eval_metrics` gets the samples of all cores.

    >>> def metrics(labels, scores):
    ...     return {'error': tf.metrics.mean_absolute_error(labels, scores)}
    >>> with tf.Graph().as_default():
    ...     labels, scores = tf.constant([1.0, 0.0]), tf.constant([0.5, 0.0])
    ...     spec = TPUEstimatorSpec('eval', loss=tf.reduce_mean(labels - scores),
    ...                             eval_metrics=(metrics, [labels, scores]))
    ...     print(sorted(spec.as_estimator_spec().eval_metric_ops))
    ['error']
    >>> TPUEstimatorSpec('eval', loss=0.0, eval_metrics=(metrics, [1.0]))
    Traceback (most recent call last):
    RuntimeError: In TPUEstimatorSpec.eval_metrics, length of tensors 1 does not match method \
args of the function, which takes 2.
    """

    __slots__ = ()

    def __new__(cls, mode: str, predictions: Any = None, loss: Any = None, train_op: Any = None,
                eval_metrics: _HostCall | None = None,
                export_outputs: Mapping[str, Any] | None = None,
                scaffold_fn: Callable[[], tf.train.Scaffold] | None = None,
                host_call: _HostCall | None = None,
                training_hooks: Sequence[tf.train.SessionRunHook] | None = None,
                evaluation_hooks: Sequence[tf.train.SessionRunHook] | None = None,
                prediction_hooks: Sequence[tf.train.SessionRunHook] | None = None
                ) -> TPUEstimatorSpec:
        """Checks and stores the arguments.

        Raises:
          ValueError, TypeError, RuntimeError: as the original does.
        """
        for name, call in (('eval_metrics', eval_metrics), ('host_call', host_call)):
            if call is not None:
                _check_host_call(name, call)
        if _tf.is_inference_on_tpu():
            predictions = _computed_here(predictions)
            if isinstance(export_outputs, Mapping):
                export_outputs = {key: _output_computed_here(output)
                                  for key, output in export_outputs.items()}
        # The nightly's spec knows what each mode needs and in which form.
        with _tf.without_deprecation_warnings():
            checked = _legacy.load().EstimatorSpec(
                mode=mode, predictions=predictions, loss=loss, train_op=train_op,
                export_outputs=export_outputs, training_hooks=training_hooks,
                evaluation_hooks=evaluation_hooks, prediction_hooks=prediction_hooks)
        return super().__new__(
            cls, mode=mode, predictions=checked.predictions, loss=checked.loss,
            train_op=checked.train_op, eval_metrics=eval_metrics,
            export_outputs=checked.export_outputs, scaffold_fn=scaffold_fn, host_call=host_call,
            training_hooks=checked.training_hooks, evaluation_hooks=checked.evaluation_hooks,
            prediction_hooks=checked.prediction_hooks)

    def as_estimator_spec(self) -> Any:
        """Returns the `EstimatorSpec` for a plain Estimator; builds metrics and host_call now."""
        metrics = None
        if self.eval_metrics is not None:
            metrics = host_calls.call('eval_metrics', *self.eval_metrics)
        hooks = []
        if self.host_call is not None and self.host_call[1]:
            if self.mode == _legacy.load().ModeKeys.TRAIN:
                host_calls.read_before_increment(
                    tf.train.get_global_step(), tf.nest.flatten(self.host_call[1]))
            hooks.append(SummaryWriters(host_calls.operations_of(
                host_calls.call('host_call', *self.host_call))))
        return _legacy.load().EstimatorSpec(
            mode=self.mode, predictions=self.predictions, loss=self.loss,
            train_op=self.train_op, eval_metric_ops=metrics, export_outputs=self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            training_hooks=[*(self.training_hooks or ()), *hooks],
            evaluation_hooks=[*(self.evaluation_hooks or ()), *hooks],
            prediction_hooks=[*(self.prediction_hooks or ()), *hooks])

    def to_output(self) -> ModelOutput:
        """Returns the output of the model for the runner."""
        keys = _legacy.load().ModeKeys
        hooks = {keys.TRAIN: self.training_hooks, keys.EVAL: self.evaluation_hooks,
                 keys.PREDICT: self.prediction_hooks}[self.mode]
        return ModelOutput(
            loss=self.loss, train_op=self.train_op, metrics=self.eval_metrics,
            scaffold_fn=self.scaffold_fn, hooks=tuple(hooks or ()), predictions=self.predictions,
            host_call=self.host_call if self.host_call and self.host_call[1] else None)


def _computed_here(values: Any) -> Any:
    """Returns a tensor or a dict of them, with copies of the features among them.

    A TPU graph of an export has the features outside of its function.
    """
    graph = tf.get_default_graph()
    return tf.nest.map_structure(
        lambda value: tf.identity(value)
        if isinstance(value, tf.Tensor) and value.graph is not graph else value, values)


def _output_computed_here(output: Any) -> Any:
    kind = _legacy.load().export.PredictOutput
    return kind(_computed_here(output.outputs)) if isinstance(output, kind) else output


def _check_host_call(name: str, call: Any) -> None:
    """Makes the original's checks of `eval_metrics` and `host_call`, in its order."""
    if not isinstance(call, (tuple, list)):
        raise ValueError(f'{name} should be tuple or list')
    if len(call) != 2:
        raise ValueError(f'{name} should have two elements.')
    function, tensors = call
    if not callable(function):
        raise TypeError(f'{name}[0] should be callable.')
    if not isinstance(tensors, (tuple, list, dict)):
        raise ValueError(f'{name}[1] should be tuple or list, or dict.')
    if isinstance(tensors, (tuple, list)):
        kinds = [one.kind for one in inspect.signature(function).parameters.values()]
        taken = len(kinds) - kinds.count(inspect.Parameter.VAR_KEYWORD)
        if inspect.Parameter.VAR_POSITIONAL not in kinds and len(tensors) != taken:
            raise RuntimeError(
                f'In TPUEstimatorSpec.{name}, length of tensors {len(tensors)} does not match '
                f'method args of the function, which takes {taken}.')
