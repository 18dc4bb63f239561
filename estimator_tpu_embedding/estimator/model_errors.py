"""Checks of what model_fn did that hold whether it returned or failed, and of what it returned."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf
from ..columns import used
from ..core.plan import Plan
from ..errors import EteError


@contextlib.contextmanager
def columns_checked(plan: Plan | None) -> Iterator[None]:
    """Makes sure that model_fn uses the columns of the spec, whether it fails or not.

    Args:
      plan: of the spec; `None` without one.

    Raises:
      ConfigError: if it uses others.
    """
    columns = _tf.columns_used(tf.get_default_graph())
    try:
        yield
    except EteError:
        raise
    except Exception as error:
        used.check(columns, plan, error)
        raise
    used.check(columns, plan)


def advice_on(returned: Any) -> str:
    """What to return instead of what is no TPUEstimatorSpec."""
    if returned is None:
        return 'model_fn returned nothing: it may lack a return.'
    if isinstance(returned, _legacy.estimator_spec_class()):
        return ('Return tf.compat.v1.estimator.tpu.TPUEstimatorSpec, which takes '
                'eval_metrics=(function, tensors) in place of eval_metric_ops, and scaffold_fn '
                'in place of scaffold.')
    return 'Return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, ...).'
