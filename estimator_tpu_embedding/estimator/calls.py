"""How a TPUEstimator calls input_fn and model_fn, and what it accepts from them."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy
from ..core.specs import Topology
from ..runner.model import ModelOutput
from .context import TPUContext
from .spec import TPUEstimatorSpec


def call_input_fn(input_fn: Callable[..., Any], params: dict[str, Any], mode: str, config: Any
                  ) -> Any:
    """Calls input_fn with those of params, mode and config that it takes."""
    offered = {'params': params, 'mode': mode, 'config': config}
    with tf.device('/device:CPU:0'):
        return input_fn(**_taken(input_fn, offered))


def call_model_fn(model_fn: Callable[..., Any], features: Any, labels: Any, mode: str,
                  params: dict[str, Any], config: Any) -> Any:
    """Calls model_fn with features and those of the rest that it takes.

    Raises:
      ValueError: if there are labels and it does not take them.
    """
    offered = {'labels': labels, 'mode': mode, 'params': params, 'config': config}
    taken = _taken(model_fn, offered)
    if labels is not None and 'labels' not in taken:
        raise ValueError('model_fn does not take labels, but input_fn returns labels.')
    return model_fn(features=features, **taken)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TpuCalls:
    """The calls of one mode on the emulated system.

    Attributes:
      mode: `'train'`, `'eval'` or `'infer'`.
      topology: of the system.
      params: of the user; copied for each call.
      config: the RunConfig; copied for each call.
      batch_size: samples per core.
    """

    mode: str
    topology: Topology
    params: dict[str, Any]
    config: Any
    batch_size: int

    def dataset(self, input_fn: Callable[..., Any], host: int) -> tf.data.Dataset:
        """What input_fn returns for one host.

        Raises:
          ValueError: if it does not take params.
          TypeError: if it does not return a dataset.
        """
        if not _taken(input_fn, {'params': None}):
            raise ValueError(
                f'input_fn ({input_fn}) does not include params argument, required by '
                'TPUEstimator to pass batch size as params["batch_size"].  Define it as '
                'def input_fn(params).')
        params = with_items(self.params, batch_size=self.batch_size,
                            context=TPUContext(self.topology, host))
        dataset = call_input_fn(input_fn, params, self.mode, copy.deepcopy(self.config))
        if not isinstance(dataset, (tf.data.Dataset, tf.compat.v2.data.Dataset)):
            if self.mode == _legacy.mode_keys().PREDICT:
                raise TypeError('For mode PREDICT, `input_fn` must return `Dataset` instead of '
                                '`features` and `labels`.')
            raise TypeError(
                '`input_fn` must return a `Dataset` for the PER_HOST_V2 input pipeline '
                f'configuration.  It returned {type(dataset).__name__}.')
        return dataset

    def output(self, model_fn: Callable[..., Any], core: int, features: Any, labels: Any
               ) -> ModelOutput:
        """What model_fn returns on one core.

        Raises:
          ValueError: if it does not take params, or labels that there are.
          RuntimeError: if it returns something else than a TPUEstimatorSpec.
        """
        del core  # A model must not depend on where it runs.
        if not _taken(model_fn, {'params': None}):
            raise ValueError(
                f'model_fn ({model_fn}) does not include params argument, required by '
                "TPUEstimator to pass batch size as params['batch_size']")
        params = with_items(self.params, batch_size=self.batch_size, use_tpu=True,
                            context=TPUContext(self.topology))
        spec = call_model_fn(model_fn, features, labels, self.mode, params,
                             copy.deepcopy(self.config))
        if isinstance(spec, _legacy.estimator_spec_class()):
            spec = _tpu_spec(spec)
        if not isinstance(spec, TPUEstimatorSpec):
            verb = ('prediction' if self.mode == _legacy.mode_keys().PREDICT else 'evaluation')
            raise RuntimeError(f'estimator_spec used by TPU {verb} must have type'
                               f'`TPUEstimatorSpec`. Got {type(spec)}')
        return spec.to_output()


def with_items(params: Any, **items: Any) -> Any:
    """A copy of the params of the user with items added; it keeps their class.

    Args:
      params: a dict, or an object like `HParams`, with `set_hparam` and `add_hparam`.
      **items: to add or to replace.
    """
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
    """The TPUEstimatorSpec for an EstimatorSpec of a training model_fn, else the spec itself."""
    if spec.mode != _legacy.mode_keys().TRAIN:
        return spec
    if spec.training_chief_hooks:
        raise ValueError('training_chief_hooks returned by EstimatorSpec is not supported in '
                         'TPUEstimator.If you want to pass training hooks, please pass via '
                         'training_hooks.')
    if spec.scaffold is not None:
        tf.logging.warning('The scaffold of an EstimatorSpec is ignored, as in the original. '
                           'Return a TPUEstimatorSpec with a scaffold_fn.')
    return TPUEstimatorSpec(mode=spec.mode, predictions=spec.predictions, loss=spec.loss,
                            train_op=spec.train_op, training_hooks=spec.training_hooks)


def _taken(function: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    """Those of the offered arguments that a function takes by name and that are not bound."""
    names = set(inspect.signature(function).parameters)
    if isinstance(function, functools.partial):
        names -= function.keywords.keys()
    return {name: value for name, value in offered.items() if name in names}
