"""Refuses a checkpoint whose rows may be in `mod` order where a graph reads row `i` for id `i`.

Such a graph has no engine, and does not know which variables are tables. Only a manifest says for
certain how rows are ordered. If it was lost, the manifests of the neighbouring checkpoints may
tell, or the config in the graph that the original saved.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ..core.partition import STORED_BY_ID
from ..errors import (
    CorruptCheckpointError,
    IncompatibleCheckpointError,
    Problem,
    UnreadableConfigError,
    shown,
)
from ..proto import reading
from ..proto.codec import STRATEGIES
from .file_names import MANIFEST, base_of, graph_of, manifest_path, name_of, parse, step_of
from .held import Held, tables_out_of_order
from .manifest import read_manifest
from .options import CheckpointOptions


class Found(NamedTuple):
    """A sign that rows are `mod`: on how many hosts, and the file that says so."""

    hosts: int
    where: str


def check_order_of_ids(held: Held, options: CheckpointOptions) -> None:
    """Refuses a checkpoint from which training without the engine cannot continue.

    Raises:
      IncompatibleCheckpointError: E609 if a table in it is `mod` on several hosts; E608 if one
        seems to be.
    """
    check_without_manifest(held, options)
    problems = [
        Problem('E609', held.where,
                f'the rows of table "{name}" must be in the order of ids to be trained with '
                'use_tpu=False', f'mod rows of {table.hosts} hosts', 'Train it with use_tpu=True '
                'and partition_strategy="div" until its next checkpoint.')
        for name, table in tables_out_of_order(held.manifest).items()]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def check_without_manifest(held: Held, options: CheckpointOptions) -> None:
    """Refuses a checkpoint without a manifest if anything says that its rows are in `mod` order.

    Raises:
      IncompatibleCheckpointError: E608 if something says it.
    """
    if held.manifest is not None:
        return
    order = options.assumed_order()
    if order is not None and order[0] not in STORED_BY_ID:
        raise IncompatibleCheckpointError(Problem(
            'E608', held.where, 'a graph without the engine needs the manifest that says '
            f'which tensors are {options.assume} tables', 'no manifest', 'Train with use_tpu=True '
            'from it for a step; the next one has it.'))
    sign = of_mod(held.prefix) if order is None else None
    if sign is not None:
        raise IncompatibleCheckpointError(problem('E608', held.where, 'its tables', sign))


def problem(code: str, where: str, tables: str, found: Found | None) -> Problem:
    """Returns the problem that nothing says how the rows of a table are ordered."""
    return Problem(
        code, where, f'the rows of {tables} mean ids only with the manifest that says how they '
        'are ordered', 'no manifest' + (
            f', and {found.where} says mod on {found.hosts} hosts' if found is not None else ''),
        f'If you know it: --assume mod:{found.hosts if found is not None else "H"} for '
        f'{"that" if found is not None else "H hosts"}, or --assume div; '
        'CheckpointOptions(assume=...).')


def of_mod(checkpoint: str) -> Found | None:
    """Returns the first sign that the rows of a checkpoint are not in the order of ids."""
    return next(_signs(checkpoint), None)


def _signs(checkpoint: str) -> Iterator[Found]:
    for other in _others(checkpoint):
        try:
            tables = tables_out_of_order(read_manifest(other))
        except CorruptCheckpointError:
            continue
        for table in tables.values():
            yield Found(table.hosts, shown(os.path.basename(manifest_path(other)), 255))
    graph = graph_of(checkpoint)
    try:
        sources = reading.read_file(graph, follow=False)
    except UnreadableConfigError:  # There is none, or it says nothing.
        return
    for source in sources:
        if source.config.sharding_strategy == STRATEGIES['mod'] and source.config.num_hosts > 1:
            yield Found(source.config.num_hosts, shown(os.path.basename(graph), 255))


def _others(checkpoint: str) -> list[str]:
    """Returns the next older and the next newer checkpoint that have a manifest.

    One that is further away may be of another job, which may have put rows in another order.
    """
    directory, name = os.path.split(checkpoint)
    base, own = base_of(name), step_of(name)
    files = os.listdir(directory or '.') if os.path.isdir(directory or '.') else []
    parts = [part for part in map(parse, files) if part is not None and part.kind == MANIFEST]
    steps = sorted(step for part in parts if base_of(part.checkpoint) == base
                   and (step := step_of(part.checkpoint)) is not None)
    before = [step for step in steps if own is not None and step < own]
    after = [step for step in steps if own is None or step > own]
    return [os.path.join(directory, name_of(base, step)) for step in (*before[-1:], *after[:1])]
