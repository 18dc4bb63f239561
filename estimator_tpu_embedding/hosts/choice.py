"""Which engine executes a plan: that of the native kernels, or that of stock operations."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import tensorflow.compat.v1 as tf

from .. import _process
from ..core.budget import needs_of, require_fit
from ..core.kernels import Kernels
from ..core.plan import Plan
from ..errors import Problem, SetupError
from ..native import library
from . import memory
from .backend import Backend, Engine
from .stock import StockEngine
from .native import make_engine
from .engine_backend import EngineBackend
from .tables import create_tables


def make_backend(plan: Plan, variable_names: Mapping[str, str],
                 global_step: tf.Variable | tf.Tensor, *,
                 slot_names: Mapping[str, Sequence[str]] | None = None,
                 skips_nonfinite: bool = False, kernels: Kernels = Kernels()) -> Backend:
    """Creates the tables of a plan and their engine in the default graph.

    Args:
      plan: what to execute.
      variable_names: for each table the name of its variable.
      global_step: what dynamic learning rates are functions of.
      slot_names: for each table the names of its slots; by `None` they are below the variable's.
      skips_nonfinite: gradients that are not finite make an update one that changes nothing,
        instead of an error.
      kernels: which engine, and its threads.

    Raises:
      ConfigError: if the memory that this process may have cannot hold the tables.
      SetupError: if the native kernels are asked for and cannot be used.
      CallError: in a process that was forked when TensorFlow ran already.
    """
    _process.require_threads('TPUEmbedding')
    require_fit(needs_of(plan), memory.limit())
    engine: Engine
    if uses_native(kernels.choice):
        engine = make_engine(plan, variable_names, slot_names, skips_nonfinite=skips_nonfinite,
                             threads=kernels.threads or 0)
    else:
        engine = StockEngine(plan, create_tables(plan, variable_names, slot_names),
                             skips_nonfinite=skips_nonfinite)
    return EngineBackend(engine, global_step)


def uses_native(choice: str) -> bool:
    """Whether the native kernels execute a plan; warns, once, where they should but cannot.

    Args:
      choice: see `core.kernels.Kernels`.

    Raises:
      SetupError: if they are asked for and cannot be used.
    """
    if choice == 'stock':
        return False
    reason = library.why_not()
    if not reason:
        return True
    if choice == 'native':
        raise SetupError(Problem('E006', 'kernels', 'the native kernels must be usable',
                                 reason, library.remedy()))
    _tell(reason, library.remedy())
    return False


@functools.cache
def _tell(reason: str, remedy: str) -> None:
    """Once per process: a job has an engine for each of its runs."""
    tf.logging.warning('%s', Problem(
        'W006', 'kernels', 'the native kernels cannot be used, so tables are trained with '
        "TensorFlow's own operations, several times slower", reason, remedy))
