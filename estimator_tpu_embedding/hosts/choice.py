"""Chooses the engine of a plan, native or stock, and opens it for a graph or for functions.

This is the one place that does either: `runner/` and `estimator/` ask for a backend in a graph,
`midlevel/` for an engine in functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import tensorflow.compat.v1 as tf

from .. import _process
from ..core.budget import needs_of, require_fit
from ..core.exchange import Exchange
from ..core.kernels import Kernels
from ..core.plan import Plan
from ..errors import Problem, SetupError
from ..native import layout, library
from . import lease, memory
from .backend import Backend, Engine
from .engine_backend import EngineBackend
from .native import NativeEngine
from .native_exchange import NativeOwner
from .native_tables import make_engine, make_engines
from .owner import StockOwner
from .per_host import PerHostEngine
from .placement import Placement
from .stock import StockEngine
from .tables import HostedTable, create_tables, tables_at


def make_backend(plan: Plan, variable_names: Mapping[str, str],
                 global_step: tf.Variable | tf.Tensor, *,
                 slot_names: Mapping[str, Sequence[str]] | None = None,
                 skips_nonfinite: bool = False, kernels: Kernels = Kernels(),
                 placement: Placement | None = None) -> Backend:
    """Creates the tables of a plan and their engine in the default graph.

    Args:
      plan: the plan.
      variable_names: for each table the name of its variable.
      global_step: the argument of dynamic learning rates.
      slot_names: for each table the names of its slots; if it is `None` they are below the
        variable's.
      skips_nonfinite: whether an update changes nothing if a gradient is not finite; otherwise it
        fails.
      kernels: which engine, and its threads.
      placement: the devices of hosts that are owners of their rows; `None` is one engine for all
        hosts, in this process.

    Raises:
      ConfigError: if the memory that this process may have cannot hold the tables.
      SetupError: if the native kernels are asked for and cannot be used.
      CallError: in a process that was forked when TensorFlow ran already.
    """
    _process.require_threads('TPUEmbedding')
    if placement is None or not placement.is_remote:
        require_fit(needs_of(plan), memory.limit())
    engine: Engine
    if placement is not None:
        engine = _make_owners(plan, variable_names, slot_names, kernels, placement,
                              skips_nonfinite=skips_nonfinite)
    elif _uses_native(kernels.choice):
        engine = make_engine(plan, variable_names, slot_names, skips_nonfinite=skips_nonfinite,
                             threads=kernels.threads or 0)
    else:
        engine = StockEngine(plan, create_tables(plan, variable_names, slot_names),
                             skips_nonfinite=skips_nonfinite)
    return EngineBackend(engine, global_step)


def _make_owners(plan: Plan, variable_names: Mapping[str, str],
                 slot_names: Mapping[str, Sequence[str]] | None, kernels: Kernels,
                 placement: Placement, *, skips_nonfinite: bool) -> PerHostEngine:
    """Creates the tables of a plan with an owner per host."""
    engines: Mapping[int, NativeEngine | StockEngine]
    if _uses_native(kernels.choice):
        tables, engines = make_engines(plan, variable_names, slot_names, placement,
                                       threads=kernels.threads or 0)
    else:
        tables = create_tables(plan, variable_names, slot_names, placement)
        engines = {host: StockEngine(own, tables_at(own, tables, host), skips_nonfinite=True)
                   for host, own in Exchange.of(plan).owners.items()}
    return PerHostEngine(
        plan, tables, {host: NativeOwner(engine) if isinstance(engine, NativeEngine)
                       else StockOwner(engine) for host, engine in engines.items()}, placement,
        skips_nonfinite=skips_nonfinite)


def open_engine(plan: Plan, tables: dict[str, HostedTable], kernels: Kernels,
                settle: Callable[[], None]) -> Engine:
    """Opens an engine for functions, over variables that exist; it closes when they are gone.

    Args:
      plan: the plan, of one host.
      tables: its tables by name, of variables that are `native.owned.OwnedVariable`.
      kernels: which engine, and its threads.
      settle: see `lease.attach`.

    Raises:
      SetupError: if the native kernels are asked for and cannot be used.
    """
    if not _uses_native(kernels.choice):
        lease.attach(tables, None, settle)
        return StockEngine(plan, tables)
    handle = library.load().ete_open(**layout.attributes(plan, kernels.threads or 0))
    lease.attach(tables, handle, settle)
    return NativeEngine(plan, tables, handle, in_functions=True)


def _uses_native(choice: str) -> bool:
    """Returns whether the native kernels execute a plan; warns once if they should but cannot.

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
    """Warns once per process, because a job has an engine for each of its runs."""
    tf.logging.warning('%s', Problem(
        'W006', 'kernels', 'the native kernels cannot be used, so tables are trained with '
        "TensorFlow's own operations, several times slower", reason, remedy))
