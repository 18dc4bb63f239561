"""Chooses the engine of a plan, native or stock, and opens it for a graph or for functions.

This is the one place that does either: `runner/` and `estimator/` ask for an engine in a graph,
`midlevel/` for one in functions.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence

import tensorflow.compat.v1 as tf

from .. import _process, _tf
from ..core.budget import needs_of, require_fit
from ..core.plan import Plan
from ..core.specs import Kernels
from ..errors import ConfigError, Problem, SetupError
from ..native import library, plan_attributes
from ..ops import checks
from . import memory_limits
from .engine import Engine
from .native_engine import NativeEngine, make_engine, make_engines
from .per_host import PerHostEngine
from .placement import Placement
from .stock_engine import StockEngine
from .table_parts import HostedTable, create_tables, parts_of


def choose_engine(plan: Plan, variable_names: Mapping[str, str], *,
                  slot_names: Mapping[str, Sequence[str]] | None = None,
                  skips_nonfinite: bool = False, kernels: Kernels = Kernels(),
                  placement: Placement | None = None) -> Engine:
    """Creates the tables of a plan and their engine in the default graph.

    Args:
      variable_names: for each table the name of its variable.
      slot_names: for each table the names of its slots; if it is `None` they are below the
        variable's.
      skips_nonfinite: whether an update changes nothing if a gradient is not finite; otherwise it
        fails.
      placement: the devices of hosts that are owners of their rows; `None` is one engine for all
        hosts, in this process.

    Raises:
      ConfigError: if the memory that this process may have cannot hold the tables, or others than
        native kernels would have them on a disk.
      SetupError: if kernels are asked for, or needed by owners, that cannot be used.
      CallError: in a process that was forked when TensorFlow ran already.
    """
    _process.require_threads('TPUEmbedding')
    if placement is None or not placement.is_remote:
        require_fit(needs_of(plan), memory_limits.limit(), kernels.memory)
    if placement is not None:
        return _make_owners(plan, variable_names, slot_names, kernels, placement,
                            skips_nonfinite=skips_nonfinite)
    if _uses_native(kernels):
        return make_engine(plan, variable_names, slot_names, skips_nonfinite=skips_nonfinite,
                           kernels=kernels)
    return StockEngine(plan, create_tables(plan, variable_names, slot_names),
                       skips_nonfinite=skips_nonfinite)


def _make_owners(plan: Plan, variable_names: Mapping[str, str],
                 slot_names: Mapping[str, Sequence[str]] | None, kernels: Kernels,
                 placement: Placement, *, skips_nonfinite: bool) -> PerHostEngine:
    """Creates the tables of a plan with an owner per host."""
    reason = "kernels='stock'" if kernels.choice == 'stock' else library.why_not()
    if reason:
        raise SetupError(Problem(
            'E006', 'kernels', 'hosts that are processes need the native kernels', reason,
            'Leave the choice out.' if kernels.choice == 'stock' else library.remedy()))
    tables, engines = make_engines(plan, variable_names, slot_names, placement,
                                   kernels=kernels)
    return PerHostEngine(plan, tables, engines, placement, skips_nonfinite=skips_nonfinite)


def open_engine(plan: Plan, tables: dict[str, HostedTable], kernels: Kernels,
                settle: Callable[[], None]) -> Engine:
    """Opens an engine for functions, over `EagerTableVariable`s; it closes when they are gone.

    The plan has one host. For `settle` see `_attach`. Native kernels that are asked for and cannot
    be used are a SetupError.
    """
    if not _uses_native(kernels):
        _attach(tables, None, settle)
        return StockEngine(plan, tables)
    try:
        handle = library.load().ete_open(
            **plan_attributes.attributes(plan, kernels.threads or 0, kernels.memory))
    except tf.errors.FailedPreconditionError as error:
        problem = checks.message_to_problem(error.message)
        raise error if problem is None else ConfigError(problem) from None
    _attach(tables, handle, settle)
    return NativeEngine(plan, tables, handle, in_functions=True)


def _uses_native(kernels: Kernels) -> bool:
    """Returns whether the native kernels execute a plan; warns once if they should but cannot."""
    reason = "kernels='stock'" if kernels.choice == 'stock' else library.why_not()
    if not reason:
        return True
    if kernels.memory is not None:
        raise ConfigError(kernels.problem_of_memory('kernels', reason))
    if kernels.choice == 'stock':
        return False
    if kernels.choice == 'native':
        raise SetupError(Problem('E006', 'kernels', 'the native kernels must be usable',
                                 reason, library.remedy()))
    _tell(reason, library.remedy())
    return False


@functools.cache
def _tell(reason: str, remedy: str) -> None:
    """Warns once per process, because a job has an engine for each of its runs."""
    tf.logging.warning('%s', Problem(
        'W006', 'kernels', 'the native kernels cannot be used, so tables are trained with '
        "TensorFlow's own operations, several times slower", reason, remedy))


def _attach(tables: Mapping[str, HostedTable], handle: tf.Tensor | None,
            settle: Callable[[], None]) -> None:
    """Attaches variables to an engine, which stays open as long as one of them exists.

    In a graph a session owns its engine. Functions have no session. The stock engine has no handle
    and need not be closed. `settle` makes pending updates, and is called before a variable is read.
    It is kept by a weak reference: updates that are pending end with its object.
    """
    before_read = functools.partial(_call_if_alive, weakref.WeakMethod(settle))
    for number, part in enumerate(parts_of(tables)):
        part.attach(handle, number, before_read)
    if handle is not None:  # The variables hold this object, and nothing else does.
        closer = weakref.finalize(before_read, _close, handle)
        closer.atexit = False  # TensorFlow may be gone then, and so is the memory soon.


def _call_if_alive(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    found = method()
    if found is not None:
        found()


def _close(handle: tf.Tensor) -> None:
    """Closes an engine at once, even where a function is being traced, which may hold locks."""
    with _tf.eager_mode():
        library.load().ete_close(handle)
