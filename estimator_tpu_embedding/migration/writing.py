"""Writes the tensors of a migration, a few MB at a time, in the order that the target wants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..checkpoint.bundle_writer import BundleWriter, Part
from ..checkpoint.manifest import StoredFile
from ..checkpoint.object_graph import GRAPH_KEY, GraphBuilder, Place, escaped, joined
from ..checkpoint.rows import Ordered, evenly
from ..checkpoint.tensors import KINDS
from ..core.partition import Partition
from .moves import INT64, Move
from .plan import Plan
from .target import COUNTER, KERAS, PARAMETERS, TF1, VARIABLES

_CHUNK = 2**21
"""Bytes at once: few enough to stay in the cache of a processor until they are written."""


def write(plan: Plan, prefix: str) -> dict[str, StoredFile]:
    """Writes the files of the checkpoint; a few MB of memory are enough.

    Args:
      plan: what to write.
      prefix: of the new files, none of which exists.

    Returns:
      As `BundleWriter.finish`.

    Raises:
      CorruptCheckpointError: if the source cannot be read.
      OSError: if a file cannot be written.
    """
    with BundleWriter(prefix) as out:
        for move in plan.moves:
            _write_one(plan, move, out)
        for made in plan.made:
            value = np.array(made.value, KINDS[made.dtype][1])
            out.rows(made.target, made.dtype, ())[0].append(value.tobytes())
        if plan.pattern is not None:
            plan.pattern.write(out, plan.written)
        elif plan.target.kind != TF1:
            _write_graph(plan, out)
        return out.finish()


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
        parts[host].append(np.ascontiguousarray(rows[evenly(np.flatnonzero(hosts == host))]))


def _write_graph(plan: Plan, out: BundleWriter) -> None:
    """Writes the graph of objects, and the counter that `tf.train.Checkpoint` expects."""
    graph = GraphBuilder()
    for move in plan.moves:
        if move.place is not None:  # Others are for the way back.
            graph.add(move.place, move.source)
    for made in plan.made:
        if made.place is not None:
            graph.add(made.place, made.target)
    counter = Place(COUNTER)
    if all(move.target != counter.key for move in plan.moves):
        graph.add(counter, COUNTER)
        out.rows(counter.key, INT64, ())[0].append(np.int64(plan.step).tobytes())
    above = joined(plan.target.tables_path, VARIABLES)
    written = {move.place for move in plan.moves}
    for one, table in plan.tables:
        own, *slots = plan.target.table_places(table, one.family)
        graph.alias(joined(joined(above, escaped(table)), PARAMETERS), own.path)
        for place in slots if plan.target.slots != KERAS else ():
            if place in written:
                slot = place.path.rpartition('.S')[2]
                graph.alias(joined(joined(above, escaped(table)), slot), place.path)
    graph.load_into_tpu(plan.target.tables_path)
    out.text(GRAPH_KEY, graph.content())
