"""Rewrites a model for a TPU, as the original does for the second graph of an export.

The functions of the nightly build it. Their calls of TensorFlow reach TensorFlow's own functions,
since those that emulate a TPU step aside in such a graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from . import original_runner
from .embedding_spec import EmbeddingConfigSpec
from .tpu_config import ExportSavedModelApiVersion
from .tpu_estimator_spec import TPUEstimatorSpec

MODE = '_inference_on_tpu'
"""The mode in which the base class asks for this graph; a model_fn sees PREDICT."""
TAGS = (tf.saved_model.SERVING, tf.saved_model.TPU)


def is_whole(api_version: Any) -> bool:
    """Whether the whole model_fn is rewritten, as in version 1; otherwise it rewrites itself."""
    return api_version in (1, ExportSavedModelApiVersion.V1)


def rewritten(call_model: Callable[[Any], Any], features: Any, api_version: Any,
              spec: EmbeddingConfigSpec | None) -> Any:
    """Returns the spec that `call_model` returns for features, with outputs that a TPU computes.

    The original fails at some models that work here. They give a loss or metrics, too, which are
    left out. Or they have layers of Keras with columns. It must fail at a `train_op`, and does
    here: the function of a TPU does all that is in it, so each request would train.
    """
    has_tensor_core = spec is not None and spec.tensor_core_feature_columns

    def predictions_alone(features: Any) -> Any:
        with contextlib.nullcontext() if has_tensor_core else _tf.as_on_cpu():
            found = call_model(features)
        return found._replace(loss=None, eval_metrics=None, host_call=None) if isinstance(
            found, TPUEstimatorSpec) else found

    with _tf.inference_on_tpu():
        if is_whole(api_version):
            return original_runner.original().model_fn_inference_on_tpu(predictions_alone, features)
        return predictions_alone(features)


def session_config(given: tf.ConfigProto) -> tf.ConfigProto:
    """Returns a config of a session that restores variables where no TPU is.

    TensorFlow then looks for kernels of the operations that it runs, and of no others.
    """
    config = tf.ConfigProto()
    config.CopyFrom(given)
    config.graph_options.place_pruned_graph = True
    return config
