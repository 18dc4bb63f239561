"""Calls the input_fn and the model_fn of a user, and checks the values that they return."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf
from ..columns.embedding_columns import check_columns
from ..core.deployment import Deployment, Invocation
from ..core.plan import Plan
from ..errors import EteError, noted
from ..runner.core_batches import DATASETS
from ..runner.host_calls import noting_call
from ..runner.job import FeedHookMaker, ModelOutput
from .tpu_config import InputPipelineConfig, check_partitioned_input
from .tpu_context import TPUContext
from .tpu_estimator_spec import TPUEstimatorSpec


def call_input_fn(input_fn: Callable[..., Any], params: dict[str, Any], mode: str, config: Any
                  ) -> Any:
    """Calls input_fn with params, and with mode, config and input_context if it takes them.

    `input_context` is `None`: only distribution strategies have one.

    Raises:
      ValueError: if input_fn does not take params.
    """
    if not _taken(input_fn, {'params': None}):
        raise ValueError(
            f'input_fn ({input_fn}) does not include params argument, required by '
            'TPUEstimator to pass batch size as params["batch_size"].  Define it as '
            'def input_fn(params).')
    offered = {'params': params, 'mode': mode, 'config': config, 'input_context': None}
    with tf.device('/device:CPU:0'):
        return input_fn(**_taken(input_fn, offered))


def call_model_fn(model_fn: Callable[..., Any], features: Any, labels: Any, mode: str,
                  params: dict[str, Any], config: Any, core: str = '') -> Any:
    """Calls model_fn with features, and with the other arguments that it takes.

    An error in it gets a note with the arguments, and the core, such as `' on core 0 of 2'`.

    Raises:
      ValueError: if model_fn does not take params, or not the labels that the input has.
    """
    if not _taken(model_fn, {'params': None}):
        raise ValueError(
            f'model_fn ({model_fn}) does not include params argument, required by '
            "TPUEstimator to pass batch size as params['batch_size']")
    offered = {'labels': labels, 'mode': mode, 'params': params, 'config': config}
    taken = _taken(model_fn, offered)
    if labels is not None and 'labels' not in taken:
        raise ValueError('model_fn does not take labels, but input_fn returns labels.')
    with noting_call(f'model_fn, called in mode {mode!r}{core}', features=features, labels=labels):
        return model_fn(features=features, **taken)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TpuCalls:
    """The calls of one mode on the emulated system; each has its copy of params and config."""

    mode: str
    deployment: Deployment
    params: dict[str, Any]
    config: Any
    plan: Plan | None

    def source(self, input_fn: Callable[..., Any], invocation: Invocation) -> Any:
        """Returns the dataset, or if allowed the tensors, of one invocation of input_fn.

        Raises:
          ValueError: if input_fn does not take params.
          TypeError: if the returned value does not fit the mode.
        """
        params = with_items(self.params, batch_size=self.deployment.input_batch_size,
                            context=TPUContext(self.deployment, invocation))
        try:
            source = call_input_fn(input_fn, params, self.mode, copy.deepcopy(self.config))
        except Exception as error:
            error.add_note(f'raised by the call of input_fn for {invocation.name} in mode '
                           f'{self.mode}')
            raise
        if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
            tf.logging.warning(
                'Input pipeline contains one or more QueueRunners. It could be slow and not '
                'scalable. Please consider converting your input pipeline to use `tf.data` '
                'instead (see https://www.tensorflow.org/guide/datasets for instructions.')
        if isinstance(source, DATASETS):
            if self._wants_tensors:
                raise TypeError(
                    '`input_fn` returning `Dataset`  is not yet supported in per-Core input '
                    'pipeline deployment yet. Please set TPUConfig.per_host_input_for_training '
                    'to True or return `features` and `labels` from `input_fn`')
            self._check_partitions(source.element_spec)
            return source
        if self.mode == _legacy.load().ModeKeys.PREDICT:
            raise TypeError('For mode PREDICT, `input_fn` must return `Dataset` instead of '
                            '`features` and `labels`.')
        if self.deployment.share == 'elements' and not self._wants_tensors:
            raise TypeError(
                '`input_fn` must return a `Dataset` for the PER_HOST_V2 input pipeline '
                f'configuration.  It returned {type(source).__name__}.')
        return source

    def _check_partitions(self, element: Any) -> None:
        config = self.config.tpu_config
        if config.input_partition_dims is None:
            return
        features, labels = element if isinstance(element, tuple) and len(element) == 2 else (
            element, None)
        if isinstance(features, Mapping) and self.plan is not None:
            looked_up = {name for feature in self.plan.features
                         for name in (feature.name, feature.weight_feature)}
            features = {name: spec for name, spec in features.items() if name not in looked_up}
        check_partitioned_input(config.input_partition_dims, config.num_cores_per_replica,
                                features, labels)

    @property
    def _wants_tensors(self) -> bool:
        """Returns whether every core has an input of its own, as with PER_SHARD_V1."""
        return (self.config.tpu_config.per_host_input_for_training
                == InputPipelineConfig.PER_SHARD_V1 and self.deployment.share == 'elements')

    def output(self, model_fn: Callable[..., Any], core: int, features: Any, labels: Any
               ) -> ModelOutput:
        """Calls model_fn on one core and returns its output.

        Raises:
          RuntimeError: if it returns a value that is no TPUEstimatorSpec.
          ConfigError: if it uses columns that the spec does not have.
        """
        params = with_items(self.params, batch_size=self.deployment.batch_size_per_core,
                            use_tpu=True, context=TPUContext(self.deployment))
        columns = _tf.columns_used(tf.get_default_graph())
        try:
            spec = call_model_fn(
                model_fn, features, labels, self.mode, params, copy.deepcopy(self.config),
                f' on core {core} of {self.deployment.topology.num_cores}')
        except EteError:
            raise
        except Exception as error:  # It may come of ids that were taken for rows.
            check_columns(columns, self.plan, error)
            raise
        check_columns(columns, self.plan)
        if isinstance(spec, _legacy.load().EstimatorSpec):
            spec = _tpu_spec(spec)
        if not isinstance(spec, TPUEstimatorSpec):
            keys = _legacy.load().ModeKeys
            verb = {keys.TRAIN: 'training', keys.EVAL: 'evaluation',
                    keys.PREDICT: 'prediction'}[self.mode]
            raise noted(RuntimeError(f'estimator_spec used by TPU {verb} must have type'
                                     f'`TPUEstimatorSpec`. Got {type(spec)}'),
                        _advice_on(spec))
        output = spec.to_output()
        if self._feed_hook_class is None:
            return output
        signals, name = self._feed_hook_class.get_stopping_signals_and_name(features)
        return output if signals is None else output._replace(signals=(name, signals))

    @property
    def _feed_hook_class(self) -> Any:
        is_training = self.mode == _legacy.load().ModeKeys.TRAIN
        return self.config.tpu_config.experimental_feed_hook if is_training else None

    @property
    def feed_hook(self) -> FeedHookMaker | None:
        """Returns a function that makes the feed hook of the user, or `None`."""
        if self._feed_hook_class is None:
            return None
        return functools.partial(
            self._feed_hook_class, TPUContext(self.deployment), tpu_compile_op=None,
            run_infeed_loop_on_coordinator=False, rendezvous=None, master=self.config.master,
            session_config=self.config.session_config, tpu_init_ops=[],
            outfeed_every_n_steps=self.config.tpu_config.experimental_host_call_every_n_steps)


def with_items(params: Any, **items: Any) -> Any:
    """Returns a copy of the params of the user with more items: a dict, or of `HParams`."""
    params = copy.deepcopy(params)
    for name, value in items.items():
        if not hasattr(params, 'set_hparam'):
            params[name] = value
        elif name in params:
            params.set_hparam(name, value)
        else:
            params.add_hparam(name, value)
    return params


def _tpu_spec(spec: Any) -> Any:
    """Returns a training EstimatorSpec as a TPUEstimatorSpec; any other spec as it is."""
    if spec.mode != _legacy.load().ModeKeys.TRAIN:
        return spec
    if spec.training_chief_hooks:
        raise ValueError('training_chief_hooks returned by EstimatorSpec is not supported in '
                         'TPUEstimator.If you want to pass training hooks, please pass via '
                         'training_hooks.')
    if spec.scaffold is not None:
        tf.logging.warning('EstimatorSpec.Scaffold is ignored by TPU train/eval. Please use '
                           'TPUEstimatorSpec.')
    return TPUEstimatorSpec(mode=spec.mode, predictions=spec.predictions, loss=spec.loss,
                            train_op=spec.train_op, training_hooks=spec.training_hooks)


def place_of(function: Any) -> str:
    """`make_input (/home/me/job.py:12)` for a function of the user; `''` if it is not known."""
    if isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = getattr(type(function), '__call__', None)
    code = getattr(function, '__code__', None)
    return f'{code.co_name} ({code.co_filename}:{code.co_firstlineno})' if code else ''


def _taken(function: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    """Returns the offered arguments that a function takes by name and that are not bound."""
    names = set(inspect.signature(function).parameters)
    if isinstance(function, functools.partial):
        names -= function.keywords.keys()
    return {name: value for name, value in offered.items() if name in names}


def _advice_on(returned: Any) -> str:
    """Returns advice on the value to return, for a value that is no TPUEstimatorSpec."""
    if returned is None:
        return 'model_fn returned nothing: it may lack a return.'
    if isinstance(returned, _legacy.load().EstimatorSpec):
        return ('Return tf.compat.v1.estimator.tpu.TPUEstimatorSpec, which takes '
                'eval_metrics=(function, tensors) in place of eval_metric_ops, and scaffold_fn '
                'in place of scaffold.')
    return 'Return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, ...).'
