"""Which engine executes a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from .backend import Backend
from .local import LocalBackend
from .tables import create_tables


def make_backend(plan: Plan, variable_names: Mapping[str, str],
                 global_step: tf.Variable | tf.Tensor, *,
                 slot_names: Mapping[str, Sequence[str]] | None = None,
                 skips_nonfinite: bool = False) -> Backend:
    """Creates the tables of a plan and their engine in the default graph.

    Args:
      plan: what to execute.
      variable_names: for each table the name of its variable.
      global_step: what dynamic learning rates are functions of.
      slot_names: for each table the names of its slots; by `None` they are below the variable's.
      skips_nonfinite: gradients that are not finite make an update one that changes nothing,
        instead of an error.
    """
    return LocalBackend(plan, create_tables(plan, variable_names, slot_names), global_step,
                        skips_nonfinite=skips_nonfinite)
