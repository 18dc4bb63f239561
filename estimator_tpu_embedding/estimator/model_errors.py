"""Checks the columns that model_fn used, and the value that it returned."""

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
      plan: the plan of the spec; `None` without a spec.

    Raises:
      ConfigError: if model_fn uses other columns.
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
    """Returns advice on the value to return, for a value that is no TPUEstimatorSpec."""
    if returned is None:
        return 'model_fn returned nothing: it may lack a return.'
    if isinstance(returned, _legacy.estimator_spec_class()):
        return ('Return tf.compat.v1.estimator.tpu.TPUEstimatorSpec, which takes '
                'eval_metrics=(function, tensors) in place of eval_metric_ops, and scaffold_fn '
                'in place of scaffold.')
    return 'Return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, ...).'
