"""Which checkpoint to restore, and whether it fits."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence

import tensorflow.compat.v1 as tf

from ..errors import CorruptCheckpointError, IncompatibleCheckpointError, Problem
from .manifest import StoredTable, read_manifest


def newest_checkpoint(directory: str) -> str | None:
    """The prefix of the newest checkpoint in `directory`, or `None` if it holds none.

    Raises:
      CorruptCheckpointError: if there are checkpoints but the file `checkpoint`, which names
        the newest, is missing or unreadable. Training would otherwise start at step 0 and
        overwrite them one by one.
    """
    try:
        newest = tf.train.latest_checkpoint(directory)
    except ValueError:  # The file is there and names nothing.
        newest = None
    if newest is not None or not os.path.isdir(directory):
        return newest
    steps = sorted(int(found.group(1)) for found in (
        re.fullmatch(r'model\.ckpt-(\d+)\.index', name) for name in os.listdir(directory))
        if found)
    if steps:
        raise CorruptCheckpointError(Problem(
            'E612', f'model_dir {directory}', 'the file "checkpoint" must name the newest '
            'checkpoint', f'checkpoints of the steps {steps[-5:]} and no readable file '
            '"checkpoint"', 'Write the line  model_checkpoint_path: '
            f'"model.ckpt-{steps[-1]}"  into it, or move the checkpoints away.'))
    return None


def check_fits(checkpoint: str, shapes: Mapping[str, Sequence[int | None]],
               tables: Mapping[str, StoredTable], *, may_lack: bool = False) -> None:
    """Makes sure that a checkpoint fits a graph, before anything is restored from it.

    TensorFlow restores another shape into a resource variable without a word, and `mod` rows
    of another number of hosts into the wrong rows.

    Args:
      checkpoint: its prefix.
      shapes: the full shape of every variable of the graph, by checkpoint name.
      tables: the tables of the plan, by variable name.
      may_lack: whether variables may be absent from the checkpoint.

    Raises:
      IncompatibleCheckpointError: with all differences.
      CorruptCheckpointError: if the checkpoint or its manifest cannot be read.
    """
    try:
        stored = tf.train.load_checkpoint(checkpoint).get_variable_to_shape_map()
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise CorruptCheckpointError(Problem(
            'E613', f'checkpoint {checkpoint}', 'it must be readable',
            f'{type(error).__name__}: {str(error)[:200]}', 'Use an older one.')) from error
    where = f'checkpoint {os.path.basename(checkpoint)}'
    problems = [*_shape_problems(where, stored, shapes, may_lack),
                *_order_problems(where, checkpoint, tables)]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def _shape_problems(where: str, stored: Mapping[str, Sequence[int]],
                    shapes: Mapping[str, Sequence[int | None]], may_lack: bool
                    ) -> Iterator[Problem]:
    for name, shape in sorted(shapes.items()):
        if name not in stored:
            if not may_lack:
                near = difflib.get_close_matches(name, stored, n=3)
                yield Problem('E606', where, f'it must hold the variable "{name}" '
                              f'{list(shape)}', 'no variable of that name',
                              f'Similar names there: {near}.' if near else '')
        elif list(stored[name]) != list(shape):
            yield Problem('E604', where, f'the variable "{name}" is {list(shape)} in this job',
                          f'{list(stored[name])} in the checkpoint',
                          'Use the sizes it was trained with, or another model_dir.')


def _order_problems(where: str, checkpoint: str, tables: Mapping[str, StoredTable]
                    ) -> Iterator[Problem]:
    manifest = read_manifest(checkpoint)
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
