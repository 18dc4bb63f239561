"""Migrates a checkpoint: plans, writes the tensors, compares them, and commits.

Tensors are read and written a few MB at a time, in the order of rows that the target wants.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import NamedTuple, NoReturn

import numpy as np

from ..checkpoint import commit, file_names, model_dir
from ..checkpoint.bundle import Bundle
from ..checkpoint.bundle_writer import BundleWriter, Part
from ..checkpoint.concurrent_changes import Signature, is_gone, rotated_away, signature
from ..checkpoint.file_names import label
from ..checkpoint.manifest import Manifest, StoredFile, StoredTable, read_manifest
from ..checkpoint.object_graph import GRAPH_KEY
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.storage import Storage, free_bytes
from ..checkpoint.stored_rows import Ordered, batches, evenly
from ..checkpoint.tensors import KINDS
from ..core.partition import Partition
from ..errors import CheckpointError, CheckpointWriteError, NonFiniteCheckpointError, Problem, shown
from ..version import VERSION
from . import moves
from .checkpoint_contents import TF1, Target
from .from_tf2 import Paths
from .moves import Choices, MigrationPlan, Move, size_of_files
from .to_tf2 import write_graph


class Done(NamedTuple):
    """What a migration has done."""

    prefix: str  # Of the new checkpoint.
    rows: int  # So many were compared after they were written, and were equal.
    cleaned: int  # So many saves that did not end had left something in the directory.


def migrate(prefix: str, destination: str, target: Target, choices: Choices = Choices(), *,
            paths: Paths = Paths(), options: CheckpointOptions = CheckpointOptions(),
            overwrite: bool = False) -> Done:
    """Writes a checkpoint as a program of another API restores it, and compares every row.

    Args:
      prefix: of the checkpoint.
      destination: a directory for the new one, which is made if it is missing.
      target: what the new one is for.
      choices: the map, and what may stay behind.
      paths: of the objects of a checkpoint of TF2 that is read.
      options: `assume` and `verify` count.
      overwrite: whether a checkpoint of the same name is replaced.

    Raises:
      The errors of `read`, `plan` and `carry_out`.

    Example:

        from estimator_tpu_embedding.migration import Choices, Target, migrate, read_map

        done = migrate('model_dir/model.ckpt-300', 'migrated', Target(kind='tf2'),
                       Choices(map=read_map('map.txt')))
        print(done.prefix, done.rows)
    """
    from ..checkpoint import recover
    made = moves.plan(moves.read(prefix, paths, choices.map, options), target, choices)
    return carry_out(made, destination, overwrite=overwrite,
                     verify=functools.partial(recover.verify, prefix, options))


def carry_out(plan: MigrationPlan, destination: str, *, overwrite: bool = False,
              verify: Callable[[], object] = lambda: None) -> Done:
    """Writes and commits the checkpoint of a plan; `verify` raises if the source is damaged.

    `verify` runs in another thread while the source is copied, and nothing is published before it
    has returned. SIGTERM ends all as Ctrl-C does: what was begun is removed.

    Raises:
      CheckpointError: E656 if the destination is in use.
      CheckpointWriteError: E657 if there is no room. E658 if what was written differs, or the
        source has changed.
      NonFiniteCheckpointError: E620 if a number is not finite.
      The errors of `verify`, `model_dir.claimed` and `commit.publish`. After each of them nothing
      was published, and no stage is left.
    """
    base = file_names.BASE if plan.target.kind == TF1 else file_names.OBJECT_BASE
    prefix = os.path.join(destination, file_names.name_of(base, plan.step))
    check_destination(plan, destination, prefix, overwrite)
    before = signature(plan.contents.bundle.prefix)
    with _ended_in_order(), model_dir.claimed(destination) as cleaned, Storage(
            destination) as storage, futures.ThreadPoolExecutor() as pool:
        check_destination(plan, destination, prefix, overwrite)  # Nobody else writes there now.
        _require_free(plan, destination)
        verified = pool.submit(verify)
        compared: futures.Future[int] = futures.Future()

        def write_and_compare(path: str) -> None:
            nonlocal compared
            write(plan, path)
            compared = pool.submit(compare, plan, Bundle.open(path))
            # The disk works while the bytes are compared; `publish` makes sure of it.
            pool.submit(storage.sync, os.path.relpath(file_names.data_of(path, 1)[0], destination))

        def manifest(files: dict[str, StoredFile]) -> Manifest:
            compared.result()
            verified.result()
            _require_unchanged(plan, before)
            return _manifest(plan, files)

        try:
            staged = commit.stage(storage, plan.step, write_and_compare, base=base)
            commit.publish(storage, staged, manifest)
        except NonFiniteCheckpointError as error:
            verified.result()
            raise NonFiniteCheckpointError(*[dataclasses.replace(
                problem, remedy='The source has them too. Name an older checkpoint.')
                for problem in error.problems]) from None
        except Exception:
            verified.result()  # If the source is damaged, that is why.
            raise
        return Done(prefix, compared.result(), cleaned)


def _require_unchanged(plan: MigrationPlan, before: Signature) -> None:
    """Makes sure that the source is the one that was planned for: E628 or E658 otherwise."""
    bundle = plan.contents.bundle
    if is_gone(bundle.prefix):
        raise rotated_away(bundle.prefix)
    if signature(bundle.prefix) != before or Bundle.open(bundle.prefix).tensors != bundle.tensors:
        raise CheckpointWriteError(Problem(
            'E658', label(bundle.prefix), 'it must stay as it is while it is read',
            'other files now', 'Nothing was published. Try again when no job writes it.'))


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Lets SIGTERM end the body by an exception, unless the program handles it."""
    def end(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()  # No other thread may.
    handles = is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if handles:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if handles:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def check_destination(plan: MigrationPlan, destination: str, prefix: str, overwrite: bool) -> None:
    """Makes sure that nothing is overwritten unasked: E656 otherwise."""
    got, found = None, checkpoints_in(destination)
    source = os.path.dirname(plan.contents.bundle.prefix) or '.'
    if os.path.lexists(destination) and not os.path.isdir(destination):
        got, remedy = 'something else', 'Name a directory.'
    elif os.path.isdir(destination) and os.path.samefile(source, destination):
        got, remedy = 'the directory of the source', 'Name another directory.'
    elif os.path.basename(prefix) in found and not overwrite:
        got, remedy = label(prefix), 'Name another directory, or add --overwrite.'
    elif others := sorted(found - {os.path.basename(prefix)}):
        got, remedy = f'other checkpoints, such as {shown(others[0], 255)}', 'Name another one.'
    if got is not None:
        raise CheckpointError(Problem(
            'E656', f'destination {shown(destination, 300)}', 'it must be a directory of its own '
            'for the new checkpoint', got, remedy))


def checkpoints_in(destination: str) -> set[str]:
    """Returns the names of the checkpoints in a directory, but of none that is half published."""
    files = os.listdir(destination) if os.path.isdir(destination) else []
    return {name for name in file_names.by_checkpoint(files)
            if name + file_names.PARTIAL not in files}


def _require_free(plan: MigrationPlan, destination: str) -> None:
    """Compares the bytes to be written with those that are free, before any is written."""
    free, needed = free_bytes(destination), size_of_files(plan)
    if needed > free:
        raise CheckpointWriteError(Problem(
            'E657', f'destination {shown(destination, 300)}', f'{needed:,} bytes must be free',
            f'{free:,}', 'Make room, or name a directory on another disk.'))


def write(plan: MigrationPlan, prefix: str) -> None:
    """Writes the files of the checkpoint, none of which exists."""
    with BundleWriter(prefix) as out:
        for move in plan.moves:
            _write_one(plan.contents.bundle, move, out)
        for made in plan.made:
            value = np.array(made.value, KINDS[made.dtype][1])
            out.rows(made.target, made.dtype, ())[0].append(value.tobytes())
        if plan.pattern is not None:
            for name in (GRAPH_KEY, *plan.pattern.kept(plan.written)):
                move = Move(name, name, plan.pattern.bundle.tensors[name])
                _write_one(plan.pattern.bundle, move, out)
        elif plan.target.kind != TF1:
            write_graph(plan, out)
        out.finish()


def _write_one(bundle: Bundle, move: Move, out: BundleWriter) -> None:
    tensor = move.tensor
    if not tensor.code:
        piece, = tensor.pieces
        part = out.copied(move.target, tensor.dtype, tensor.shape, piece.size, piece.crc)
        for content in bundle.content(piece):
            part.append(content)
        return
    parts = out.rows(move.target, tensor.dtype, tensor.shape, _pieces(move))
    source = Ordered(bundle, move.source, move.before)
    for ids in batches(tensor):
        _spread(source.read_bytes(ids), ids, move.after, parts)


def _pieces(move: Move) -> list[int]:
    """Returns the rows of each host, if there are several."""
    after = move.after
    if after is None or after.num_hosts == 1:
        return []
    hosts = min(after.num_hosts, after.vocabulary_size)
    return [after.rows_on(host) for host in range(hosts)]


def _spread(rows: np.ndarray, ids: np.ndarray, after: Partition | None, parts: list[Part]) -> None:
    """Appends rows to the parts of their hosts, where they lie in the order of ids."""
    if len(parts) == 1:
        parts[0].append(rows)
        return
    assert after is not None
    hosts, _ = after.locate(ids, np.maximum)
    for host in np.unique(hosts):
        parts[host].append(np.ascontiguousarray(rows[evenly(np.flatnonzero(hosts == host))]))


def compare(plan: MigrationPlan, written: Bundle) -> int:
    """Compares what was written with the source by id, and returns the number of rows.

    It raises E658 with the first difference.
    """
    count = 0
    for move in plan.moves:
        if not move.tensor.code:
            _compare_bytes(plan, move, written)
            continue
        source = Ordered(plan.contents.bundle, move.source, move.before)
        target = Ordered(written, move.target, move.after)
        for ids in batches(move.tensor):
            before, after = source.read_bytes(ids), target.read_bytes(ids)
            if not np.array_equal(before, after):
                row = int(np.flatnonzero((before != after).any(axis=1))[0])
                raise _differs(move, 'row', f'another one for id {int(ids[row]):,}')
            count += len(ids)
    return count


def _compare_bytes(plan: MigrationPlan, move: Move, written: Bundle) -> None:
    """Compares a tensor of strings, whose bytes are copied as they are."""
    before, = move.tensor.pieces
    after, = written.tensors[move.target].pieces
    contents = zip(plan.contents.bundle.content(before), written.content(after), strict=True)
    if before.size != after.size or any(one != other for one, other in contents):
        raise _differs(move, 'byte', 'another one')


def _differs(move: Move, what: str, got: str) -> CheckpointWriteError:
    return CheckpointWriteError(Problem(
        'E658', f'"{shown(move.target, 300)}"', f'each {what} that was written must be that of '
        f'"{shown(move.source, 300)}"', got, 'Is the source still being written, or the disk '
        'damaged? Nothing was published.'))


def _manifest(plan: MigrationPlan, files: dict[str, StoredFile]) -> Manifest:
    before = read_manifest(plan.contents.bundle.prefix)
    return Manifest(
        step=plan.step, tables=_tables(plan), created_by=f'estimator_tpu_embedding {VERSION}',
        config=plan.contents.config, created=time.time(), files=files,
        vocabularies=before.vocabularies if before is not None else {})


def _tables(plan: MigrationPlan) -> dict[str, StoredTable]:
    """Returns the tables of a checkpoint of TF1; those of TF2 are in the order of ids anyhow."""
    if plan.target.kind != TF1:
        return {}
    names = {move.source: move.target for move in plan.moves if move.after is not None}
    found = {}
    for one, table in plan.names.tables:
        tensor = plan.contents.tensor(one.tensor)
        found[table] = StoredTable(
            rows=tensor.rows, width=tensor.shape[1], strategy=plan.target.strategy,
            hosts=plan.target.hosts, slots=tuple(
                names[slot].removeprefix(f'{table}/') for slot in one.slots
                if names.get(slot, '').startswith(f'{table}/')))
    return found
