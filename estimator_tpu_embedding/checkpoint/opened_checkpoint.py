"""Describes an opened checkpoint: what it holds, and how the rows of its tables are ordered.

Only a manifest says for certain how rows are ordered. If it was lost, the manifests of the
neighbouring checkpoints may tell, or the config in the graph that the original saved. A graph
without the engine reads row `i` for id `i`, and does not know which variables are tables. So it
must not read a checkpoint of which anything says that its rows are `mod`.
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
from .bundle import Bundle
from .file_names import MANIFEST, base_of, graph_of, label, manifest_path, name_of, parse, step_of
from .manifest import Manifest, StoredTable, read_manifest, tensors_of
from .options import CheckpointOptions


class Opened:
    """What an opened checkpoint holds: its index and its manifest, read once and passed on.

    Attributes:
      bundle: its tensors.
      manifest: the one beside it; `None` if there is none.
      shapes: of all its tensors, by name.
      skipped: the problems of newer ones, if it was chosen in their place.
    """

    def __init__(self, bundle: Bundle, manifest: Manifest | None):
        """Takes what was read."""
        self.bundle, self.manifest = bundle, manifest
        self.skipped: tuple[Problem, ...] = ()
        self.shapes = {name: tensor.shape for name, tensor in bundle.tensors.items()}

    @classmethod
    def open(cls, checkpoint: str) -> Opened:
        """Reads index and manifest; raises CorruptCheckpointError if it cannot."""
        return cls(Bundle.open(checkpoint), read_manifest(checkpoint))

    @property
    def prefix(self) -> str:
        """Its path without a suffix."""
        return self.bundle.prefix

    @property
    def step(self) -> int | None:
        """The step that its name says; `None` if it says none."""
        return step_of(self.prefix)

    @property
    def where(self) -> str:
        """The checkpoint, as messages call it."""
        return label(self.prefix)

    @property
    def tables(self) -> dict[str, StoredTable]:
        """The tables of its manifest, by variable name; none without a manifest."""
        return self.manifest.tables if self.manifest is not None else {}

    def lacking(self, variable: str, table: StoredTable) -> list[str]:
        """Returns the tensors of a table and its slots that are not there, or have another form."""
        return [name for name in tensors_of(variable, table)
                if self.shapes.get(name) != (table.rows, table.width)
                or not self.bundle.tensors[name].is_float]


def check_manifest(opened: Opened) -> None:
    """Makes sure that a manifest belongs to the checkpoint that it lies beside.

    It must say the step in the name. Every tensor of its tables and slots must be there, with the
    shape that it says, and hold floats.

    Raises:
      CorruptCheckpointError: E614 with all that is not so.
    """
    untrue = []
    for variable, table in sorted(opened.tables.items()):
        lacking = opened.lacking(variable, table)
        if lacking:
            form = f'{table.rows} x {table.width}'
            tensors = ' and '.join(f'tensor "{shown(name)}"' for name in lacking)
            untrue.append(f'table "{shown(variable)}" of {form}, with floats of {form} in '
                          f'{tensors}')
    if opened.manifest is not None and opened.step != opened.manifest.step:
        untrue.append(f'step {opened.manifest.step}')
    if untrue:
        raise CorruptCheckpointError(Problem(
            'E614', opened.where, 'its manifest must say what it holds', ', '.join(untrue),
            'Restore both from the same copy.'))


def tables_out_of_order(manifest: Manifest | None) -> dict[str, StoredTable]:
    """Returns the tables of a manifest whose rows are not in the order of ids, by variable name."""
    return {} if manifest is None else {
        name: table for name, table in sorted(manifest.tables.items())
        if not table.partition.stores_by_id}


def check_order_of_ids(opened: Opened, options: CheckpointOptions) -> None:
    """Refuses a checkpoint from which training without the engine cannot continue.

    Raises:
      IncompatibleCheckpointError: E609 if a table in it is `mod` on several hosts; E608 if one
        seems to be.
    """
    check_without_manifest(opened, options)
    problems = [
        Problem('E609', opened.where,
                f'the rows of table "{name}" must be in the order of ids to be trained with '
                'use_tpu=False', f'mod rows of {table.hosts} hosts', 'Train it with use_tpu=True '
                'and partition_strategy="div" until its next checkpoint.')
        for name, table in tables_out_of_order(opened.manifest).items()]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def check_without_manifest(opened: Opened, options: CheckpointOptions) -> None:
    """Refuses a checkpoint without a manifest if anything says that its rows are in `mod` order.

    Raises:
      IncompatibleCheckpointError: E608 if something says it.
    """
    if opened.manifest is not None:
        return
    order = options.assumed_order()
    if order is not None and order[0] not in STORED_BY_ID:
        raise IncompatibleCheckpointError(Problem(
            'E608', opened.where, 'a graph without the engine needs the manifest that says '
            f'which tensors are {options.assume} tables', 'no manifest', 'Train with use_tpu=True '
            'from it for a step; the next one has it.'))
    sign = sign_of_mod(opened.prefix) if order is None else None
    if sign is not None:
        raise IncompatibleCheckpointError(unknown_order('E608', opened.where, 'its tables', sign))


class Sign(NamedTuple):
    """A sign that rows are `mod`: on how many hosts, and the file that says so."""

    hosts: int
    where: str


def unknown_order(code: str, where: str, tables: str, sign: Sign | None) -> Problem:
    """Returns the problem that nothing says how the rows of a table are ordered."""
    return Problem(
        code, where, f'the rows of {tables} mean ids only with the manifest that says how they '
        'are ordered', 'no manifest' + (
            f', and {sign.where} says mod on {sign.hosts} hosts' if sign is not None else ''),
        f'If you know it: --assume mod:{sign.hosts if sign is not None else "H"} for '
        f'{"that" if sign is not None else "H hosts"}, or --assume div; '
        'CheckpointOptions(assume=...).')


def sign_of_mod(checkpoint: str) -> Sign | None:
    """Returns the first sign that the rows of a checkpoint are not in the order of ids."""
    return next(_signs(checkpoint), None)


def _signs(checkpoint: str) -> Iterator[Sign]:
    for other in _neighbours(checkpoint):
        try:
            tables = tables_out_of_order(read_manifest(other))
        except CorruptCheckpointError:
            continue
        for table in tables.values():
            yield Sign(table.hosts, shown(os.path.basename(manifest_path(other)), 255))
    graph = graph_of(checkpoint)
    try:
        sources = reading.read_file(graph, follow=False)
    except UnreadableConfigError:  # There is none, or it says nothing.
        return
    for source in sources:
        if source.config.sharding_strategy == STRATEGIES['mod'] and source.config.num_hosts > 1:
            yield Sign(source.config.num_hosts, shown(os.path.basename(graph), 255))


def _neighbours(checkpoint: str) -> list[str]:
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
