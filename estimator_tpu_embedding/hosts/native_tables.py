"""Makes native engines and the variables that are views of their memory, in the default graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.plan import Plan
from ..errors import ConfigError, Problem
from ..native import layout, library
from ..native.variables import TableVariable
from .exchange import Exchange
from .native import NativeEngine
from .placement import Placement, on
from .tables import HostedTable, create_tables, hosts_of_parts, parts_of, tables_at


def make_engine(plan: Plan, variable_names: Mapping[str, str],
                slot_names: Mapping[str, Sequence[str]] | None, *, skips_nonfinite: bool = False,
                threads: int = 0, patience_ms: int = layout.PATIENCE_MS) -> NativeEngine:
    """Creates the tables of a plan and one engine for all hosts.

    Args:
      plan: the plan.
      variable_names: for each table the name of its variable.
      slot_names: for each table the names of its slots; if it is `None` they are below the
        variable's.
      skips_nonfinite: see `NativeEngine`.
      threads: how many the engine has; 0 is one per core that the process may use.
      patience_ms: how long an update waits for runs that save a table before it fails, in
        milliseconds.
    """
    engine = _engine(plan, threads, patience_ms, 'embedding_engine')
    with _views(zip(itertools.repeat(engine), itertools.count())):
        tables = create_tables(plan, variable_names, slot_names)
    _require_parts_in_order(tables, itertools.count())
    return NativeEngine(plan, tables, engine, skips_nonfinite=skips_nonfinite)


def make_engines(plan: Plan, variable_names: Mapping[str, str],
                 slot_names: Mapping[str, Sequence[str]] | None, placement: Placement, *,
                 threads: int = 0) -> tuple[dict[str, HostedTable], dict[int, NativeEngine]]:
    """Creates the tables of a plan and an engine for each host that holds rows, on its device.

    Args:
      plan: the plan.
      variable_names: see `make_engine`.
      slot_names: see `make_engine`.
      placement: the devices.
      threads: of each engine; 0 is one per core that its process may use.
    """
    owners, made = Exchange.of(plan).owners, {}
    for host, own in owners.items():
        with on(placement.host(host)):
            made[host] = _engine(own, threads, layout.PATIENCE_MS, f'embedding_engine_{host}')
    hosts = list(hosts_of_parts(plan))
    numbers = list(_numbers(hosts))
    with _views(zip([made[host] for host in hosts], numbers)):
        tables = create_tables(plan, variable_names, slot_names, placement)
    _require_parts_in_order(tables, numbers)
    engines = {}
    for host, own in owners.items():
        with on(placement.host(host)):
            # All hosts agree on gradients before; see `per_host.py`.
            engines[host] = NativeEngine(own, tables_at(own, tables, host), made[host],
                                         skips_nonfinite=True)
    return tables, engines


def _engine(plan: Plan, threads: int, patience_ms: int, name: str) -> tf.Tensor:
    # One node, outside of loops and functions: each session has one engine.
    with tf.init_scope():
        return library.load().ete_engine(
            name=name, **layout.attributes(plan, threads, patience_ms))


def _numbers(hosts: Iterable[int]) -> Iterable[int]:
    """Yields the number of each part in the engine of its host."""
    counts: dict[int, int] = {}
    for host in hosts:
        yield counts.setdefault(host, 0)
        counts[host] += 1


def _views(places: Iterable[tuple[tf.Tensor, int]]) -> Any:
    """Returns a context in which variables are views of engines.

    Args:
      places: the engine of each variable, and the number of the part there.
    """
    following = iter(places)

    def creator(_: Any, **kwargs: Any) -> TableVariable:
        # The first two arguments belong to variables without a handle. A value cached on a device
        # would be a plain read, which shares the engine's memory with its consumers.
        ignored = {'use_resource', 'expected_shape', 'caching_device'}
        engine, part = next(following)
        return TableVariable(engine=engine, part=part, **{
            name: value for name, value in kwargs.items() if name not in ignored})

    return _tf.last_creator_scope(creator)


def _require_parts_in_order(tables: Mapping[str, HostedTable], numbers: Iterable[int]) -> None:
    """Fails unless the user's variable creators made each variable exactly once."""
    for number, part in zip(numbers, parts_of(tables)):
        if not isinstance(part, TableVariable) or part.number != number:
            raise ConfigError(Problem(
                'E477', f'variable "{part.name}" of a table',
                'a variable_creator_scope must call its next_creator once, and give what '
                'that makes', f'{type(part).__name__} instead of part {number} of the engine',
                "Build the estimator's graph outside of it, or choose kernels='stock'."))
