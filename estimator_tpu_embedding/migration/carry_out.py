"""Carries out the plan of a migration: writes the tensors, compares them, and commits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..checkpoint import commit, directory, file_names
from ..checkpoint.bundle import Bundle
from ..checkpoint.bundle_writer import BundleWriter, Part
from ..checkpoint.file_names import label
from ..checkpoint.files import Storage
from ..checkpoint.manifest import Manifest, StoredFile, StoredTable, read_manifest
from ..checkpoint.object_graph import GRAPH_KEY, GraphBuilder, Place, escaped, joined
from ..checkpoint.rows import Ordered
from ..core.partition import Partition
from ..errors import CheckpointError, CheckpointWriteError, Problem, shown
from ..version import VERSION
from .plan import Move, Plan, size_of_files
from .target import COUNTER, KERAS, PARAMETERS, TF1, VARIABLES

_CHUNK = 2**23
_FLOAT32, _INT64 = 1, 9


class Done(NamedTuple):
    """What a migration has done.

    Attributes:
      prefix: of the new checkpoint.
      rows: how many rows were compared after they were written, and were equal.
      cleaned: how many saves that did not end had left something in the directory.
    """

    prefix: str
    rows: int
    cleaned: int


def carry_out(plan: Plan, destination: str, *, overwrite: bool = False,
              on_phase: commit.OnPhase = lambda phase: None) -> Done:
    """Writes and commits the checkpoint of a plan.

    Args:
      plan: what to do.
      destination: a directory, which is made if it is missing.
      overwrite: whether a checkpoint of that name is replaced.
      on_phase: is told each phase that has ended, as by `commit.commit`. For tests.

    Raises:
      CheckpointError: E656 if the destination is in use.
      CheckpointWriteError: E657 if there is no room. E658 if what was written differs.
      The errors of `directory.claimed` and `commit.publish`. Then nothing was published.
    """
    base = file_names.BASE if plan.target.kind == TF1 else file_names.OBJECT_BASE
    prefix = os.path.join(destination, file_names.name_of(base, plan.step))
    check_destination(plan, destination, prefix, overwrite)
    rows = 0

    def write(path: str) -> None:
        nonlocal rows
        _write(plan, path)
        on_phase('written')
        rows = compare(plan, Bundle.open(path))

    with directory.claimed(destination) as cleaned, Storage(destination) as storage:
        _check_room(plan, destination)
        staged = commit.stage(storage, plan.step, write, base=base, on_phase=on_phase)
        commit.publish(storage, staged, lambda files: _manifest(plan, files), on_phase=on_phase)
    return Done(prefix, rows, cleaned)


def check_destination(plan: Plan, destination: str, prefix: str, overwrite: bool) -> None:
    """Makes sure that nothing is overwritten unasked.

    Raises:
      CheckpointError: E656 if the destination is in use.
    """
    got = None
    source = os.path.dirname(plan.contents.bundle.prefix) or '.'
    if os.path.lexists(destination) and not os.path.isdir(destination):
        got, remedy = 'something else', 'Name a directory.'
    elif os.path.isdir(destination) and os.path.samefile(source, destination):
        got, remedy = 'the directory of the source', 'Name another directory.'
    elif any(map(os.path.lexists, file_names.leading_files(prefix))) and not overwrite:
        got, remedy = label(prefix), 'Name another directory, or add --overwrite.'
    elif others := _others(destination, os.path.basename(prefix)):
        got, remedy = f'other checkpoints, such as {others[0]}', 'Name another directory.'
    if got is not None:
        raise CheckpointError(Problem(
            'E656', f'destination {shown(destination, 300)}', 'it must be a directory of its own '
            'for the new checkpoint', got, remedy))


def _others(destination: str, name: str) -> list[str]:
    if not os.path.isdir(destination):
        return []
    found = file_names.by_checkpoint(os.listdir(destination))
    return sorted(shown(one, 255) for one in found if one != name)


def _check_room(plan: Plan, destination: str) -> None:
    """Compares the bytes to be written with those that are free, before any is written."""
    room = os.statvfs(destination)
    free, needed = room.f_bavail * room.f_frsize, size_of_files(plan)
    if room.f_blocks and needed > free:
        raise CheckpointWriteError(Problem(
            'E657', f'destination {shown(destination, 300)}', f'{needed:,} bytes must be free',
            f'{free:,}', 'Make room, or name a directory on another disk.'))


def _write(plan: Plan, prefix: str) -> None:
    """Writes the files of the checkpoint; memory for a few chunks is enough."""
    with BundleWriter(prefix) as out:
        for move in plan.moves:
            _write_one(plan, move, out)
        for name, value in plan.powers.items():
            out.rows(name, _FLOAT32, ())[0].append(np.float32(value).tobytes())
        if plan.target.kind != TF1:
            _write_graph(plan, out)
        out.finish()


def _write_one(plan: Plan, move: Move, out: BundleWriter) -> None:
    bundle, tensor = plan.contents.bundle, move.tensor
    if not tensor.code:
        piece, = tensor.pieces
        part = out.copied(move.target, tensor.dtype, tensor.shape, piece.size, piece.crc)
        for content in bundle.content(piece):
            part.append(content)
        return
    parts = out.rows(move.target, tensor.dtype, tensor.shape, _pieces(move))
    source = Ordered(bundle, move.source, move.before)
    for ids in batches(move):
        _spread(source.read_bytes(ids), ids, move.after, parts)


def _pieces(move: Move) -> list[int]:
    """Returns the rows of each host, if there are several."""
    after = move.after
    if after is None or after.num_hosts == 1:
        return []
    hosts = min(after.num_hosts, after.vocabulary_size)
    return [after.rows_on(host) for host in range(hosts)]


def batches(move: Move) -> Iterator[np.ndarray]:
    """Yields the ids, or rows, of a tensor of numbers in order: int64, for a few MB at a time."""
    tensor = move.tensor
    step = max(_CHUNK // max(tensor.row_bytes, 1), 1)
    for first in range(0, tensor.rows if tensor.row_bytes else 0, step):
        yield np.arange(first, min(first + step, tensor.rows), dtype=np.int64)


def _spread(rows: np.ndarray, ids: np.ndarray, after: Partition | None, parts: list[Part]) -> None:
    """Appends rows to the parts of their hosts, where they lie in the order of ids."""
    if len(parts) == 1:
        parts[0].append(rows)
        return
    assert after is not None
    hosts, _ = after.locate(ids, np.maximum)
    for host in np.unique(hosts):
        parts[host].append(rows[hosts == host])


def _write_graph(plan: Plan, out: BundleWriter) -> None:
    """Writes the graph of objects, and the counter that `tf.train.Checkpoint` expects."""
    graph = GraphBuilder()
    for move in plan.moves:
        if move.place is not None:  # Others are for the way back.
            graph.add(move.place, move.source)
    counter = Place(COUNTER)
    if all(move.target != counter.key for move in plan.moves):
        graph.add(counter, COUNTER)
        out.rows(counter.key, _INT64, ())[0].append(np.int64(1).tobytes())
    above = joined(plan.target.tables_path, VARIABLES)
    for one, table in plan.tables:
        own, *slots = plan.target.table_places(table, one.family)
        graph.alias(joined(joined(above, escaped(table)), PARAMETERS), own.path)
        written = {move.place for move in plan.moves}
        for place in slots if plan.target.slots != KERAS else ():
            if place in written:
                slot = place.path.rpartition('.S')[2]
                graph.alias(joined(joined(above, escaped(table)), slot), place.path)
    graph.load_into_tpu(plan.target.tables_path)
    out.text(GRAPH_KEY, graph.content())


def compare(plan: Plan, written: Bundle) -> int:
    """Compares what was written with the source, row by row by id.

    Returns:
      The number of rows of numbers that were compared.

    Raises:
      CheckpointWriteError: E658 with the first difference.
    """
    count = 0
    for move in plan.moves:
        if not move.tensor.code:
            continue  # Its bytes were copied with their checksum.
        source = Ordered(plan.contents.bundle, move.source, move.before)
        target = Ordered(written, move.target, move.after)
        for ids in batches(move):
            before, after = source.read_bytes(ids), target.read_bytes(ids)
            if not np.array_equal(before, after):
                row = int(np.flatnonzero((before != after).any(axis=1))[0])
                raise CheckpointWriteError(Problem(
                    'E658', f'"{shown(move.target, 300)}"', 'each row that was written must be '
                    f'the one of its id in "{shown(move.source, 300)}"',
                    f'another one for id {int(ids[row]):,}', 'Is the source still being written, '
                    'or the disk damaged? Nothing was published.'))
            count += len(ids)
    return count


def _manifest(plan: Plan, files: dict[str, StoredFile]) -> Manifest:
    before = read_manifest(plan.contents.bundle.prefix)
    return Manifest(
        step=plan.step, tables=_tables(plan), created_by=f'estimator_tpu_embedding {VERSION}',
        config=plan.contents.config, created=time.time(), files=files,
        vocabularies=before.vocabularies if before is not None else {})


def _tables(plan: Plan) -> dict[str, StoredTable]:
    """Returns the tables of a checkpoint of TF1; those of TF2 are in the order of ids anyhow."""
    if plan.target.kind != TF1:
        return {}
    names = {move.source: move.target for move in plan.moves}
    found = {}
    for one, table in plan.tables:
        tensor = plan.contents.tensor(one.tensor)
        found[table] = StoredTable(
            rows=tensor.rows, width=tensor.shape[1], strategy=plan.target.strategy,
            hosts=plan.target.hosts, slots=tuple(
                names[slot].removeprefix(f'{table}/') for slot in one.slots
                if names.get(slot, '').startswith(f'{table}/')))
    return found
