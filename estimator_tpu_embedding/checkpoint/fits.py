"""Whether a checkpoint fits a job."""

from __future__ import annotations

import difflib
import os
from collections.abc import Container, Iterator, Mapping, Sequence

import tensorflow.compat.v1 as tf

from ..errors import CorruptCheckpointError, IncompatibleCheckpointError, Problem
from .manifest import Manifest, StoredTable, read_manifest
from .recover import newest_checkpoint


def _stored_shapes(checkpoint: str) -> Mapping[str, Sequence[int]]:
    """The shapes of all tensors of a checkpoint.

    Raises:
      CorruptCheckpointError: if it cannot be opened.
    """
    try:
        shapes: Mapping[str, Sequence[int]] = (
            tf.train.load_checkpoint(checkpoint).get_variable_to_shape_map())
        return shapes
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise CorruptCheckpointError(Problem(
            'E613', f'checkpoint {checkpoint}', 'it must be readable',
            f'{type(error).__name__}: {str(error)[:200]}', 'Use an older one.')) from error


def tables_out_of_order(checkpoint: str | None) -> dict[str, StoredTable]:
    """The tables of a checkpoint whose rows are not in the order of ids, by variable name.

    Args:
      checkpoint: its prefix; `None` is no checkpoint.

    Raises:
      CorruptCheckpointError: if its manifest cannot be read.
    """
    manifest = read_manifest(checkpoint) if checkpoint is not None else None
    return dict(_out_of_order(manifest.tables if manifest is not None else {}))


def check_order_of_ids(checkpoint: str | None) -> None:
    """Makes sure that training without the engine can continue from a checkpoint.

    Raises:
      IncompatibleCheckpointError: if a table in it is `mod` on several hosts.
      CorruptCheckpointError: if its manifest cannot be read.
    """
    problems = [
        Problem('E609', f'checkpoint {os.path.basename(checkpoint or "")}',
                f'the rows of table "{name}" must be in the order of ids to be trained with '
                'use_tpu=False', f'mod rows of {table.hosts} hosts',
                'Train with use_tpu=True, or with partition_strategy="div" from the start.')
        for name, table in tables_out_of_order(checkpoint).items()]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def check_order_for_warm_start(source: str, tables: Mapping[str, StoredTable]) -> None:
    """Makes sure that a warm start gives every id its own row.

    Args:
      source: a checkpoint, or a directory of checkpoints or of a SavedModel.
      tables: those that are to be started, by variable name.

    Raises:
      IncompatibleCheckpointError: if rows of the source or of the tables are not in the order
        of ids.
      CorruptCheckpointError: if the manifest of the source cannot be read.
    """
    checkpoint = newest_checkpoint(source) if os.path.isdir(source) else source
    manifest = read_manifest(checkpoint) if checkpoint is not None else None
    problems = [
        Problem('E610', f'warm start from {source}', 'rows must be in the order of ids, there '
                'and here', f'mod rows of {table.hosts} hosts for table "{name}" {place}',
                'Use partition_strategy="div" in both; this version does not reorder rows.')
        for place, those in (('there', manifest.tables if manifest is not None else {}),
                             ('here', tables))
        for name, table in _out_of_order(those)]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def _out_of_order(tables: Mapping[str, StoredTable]) -> list[tuple[str, StoredTable]]:
    """The tables whose rows are not in the order of ids."""
    return [(name, table) for name, table in sorted(tables.items())
            if table.strategy == 'mod' and min(table.hosts, table.rows) > 1]


def check_fits(checkpoint: str, shapes: Mapping[str, Sequence[int | None] | None],
               tables: Mapping[str, StoredTable], *, optional: Container[str] = ()) -> None:
    """Makes sure that a checkpoint fits a graph, before anything is restored from it.

    TensorFlow restores another shape into a resource variable without a word, and `mod` rows
    of another number of hosts into the wrong rows.

    Args:
      checkpoint: its prefix.
      shapes: the full shape of every variable of the graph, by checkpoint name.
      tables: the tables of the plan, by variable name.
      optional: variables that may be absent from the checkpoint.

    Raises:
      IncompatibleCheckpointError: with all differences.
      CorruptCheckpointError: if the checkpoint or its manifest cannot be read.
    """
    stored = _stored_shapes(checkpoint)
    where = f'checkpoint {os.path.basename(checkpoint)}'
    manifest = read_manifest(checkpoint)
    if manifest is not None:
        _check_belongs(where, checkpoint, manifest, stored)
    problems = [*_shape_problems(where, stored, shapes, optional),
                *_order_problems(where, manifest, tables)]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def _shape_problems(where: str, stored: Mapping[str, Sequence[int]],
                    shapes: Mapping[str, Sequence[int | None] | None], optional: Container[str]
                    ) -> Iterator[Problem]:
    for name, shape in sorted(shapes.items()):
        if name not in stored:
            if name not in optional:
                near = difflib.get_close_matches(name, stored, n=3)
                yield Problem('E606', where, f'it must hold the variable "{name}" '
                              f'{shape}', 'no variable of that name',
                              f'Similar names there: {near}.' if near else '')
        elif not _is_compatible(stored[name], shape):
            yield Problem('E604', where, f'the variable "{name}" is {shape} in this job',
                          f'{list(stored[name])} in the checkpoint',
                          'Use the sizes it was trained with, or another model_dir.')


def _is_compatible(stored: Sequence[int], shape: Sequence[int | None] | None) -> bool:
    """Whether a stored shape is one that a variable of a partly known shape may have."""
    return shape is None or len(stored) == len(shape) and all(
        want in (None, have) for have, want in zip(stored, shape))


def _check_belongs(where: str, checkpoint: str, manifest: Manifest,
                   stored: Mapping[str, Sequence[int]]) -> None:
    """Makes sure that a manifest is that of the checkpoint it lies beside."""
    wrong = [f'table "{name}" of {table.rows} x {table.width}'
             for name, table in sorted(manifest.tables.items())
             if list(stored.get(name, ())) != [table.rows, table.width]]
    if not checkpoint.endswith(f'-{manifest.step}'):
        wrong.append(f'step {manifest.step}')
    if wrong:
        raise CorruptCheckpointError(Problem(
            'E614', where, 'its manifest must say what it holds', ', '.join(wrong),
            'Restore both from the same copy.'))


def _order_problems(where: str, manifest: Manifest | None, tables: Mapping[str, StoredTable]
                    ) -> Iterator[Problem]:
    if manifest is None:
        if any(table.strategy == 'mod' for table in tables.values()):
            yield Problem('E608', where, 'a job with partition_strategy="mod" needs the '
                          'manifest that says how its rows are ordered', 'no manifest',
                          'Train with "div" if the checkpoint holds rows in the order of ids.')
        return
    for name, table in sorted(tables.items()):
        there = manifest.tables.get(name)
        if there is None:
            continue  # Not a table there: its shape is compared like that of any variable.
        if there.strategy != table.strategy or (
                table.strategy == 'mod' and there.hosts != table.hosts):
            yield Problem(
                'E607', where, f'the rows of table "{name}" are ordered for {table.strategy} on '
                f'{table.hosts} hosts in this job', f'{there.strategy} on {there.hosts} hosts '
                'in the checkpoint', f'Run it with partition_strategy="{there.strategy}" on '
                f'{there.hosts} hosts; this version does not reorder rows.')
