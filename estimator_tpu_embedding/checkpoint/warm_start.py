"""Warm starts: tables begin with rows of another job's checkpoint, each id with its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.partition import STORED_BY_ID, Partition
from ..errors import IncompatibleCheckpointError, Problem
from . import recover
from .layout import Source, partition_of, tables_out_of_order
from .manifest import Manifest, StoredTable, read_manifest
from .options import CheckpointOptions
from .streaming import StreamedRows, variables_by_name

_IN_EXPORTS = os.path.join('variables', 'variables')
"""Where a SavedModel has its variables; tables in it are in the order of ids."""


def check_order_for_warm_start(source: str) -> None:
    """Makes sure that a graph without the engine is given rows in the order of ids.

    Args:
      source: a checkpoint, or a directory of checkpoints or of a SavedModel.

    Raises:
      IncompatibleCheckpointError: E610 if not.
      CorruptCheckpointError: if its manifest cannot be read.
    """
    problems = [
        Problem('E610', f'warm start from {source}', 'with use_tpu=False rows must be in the order '
                'of ids', f'mod rows of {table.hosts} hosts for table "{name}"',
                'Start from an export of that model.')
        for name, table in tables_out_of_order(_checkpoint_of(source)).items()]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def start_warm(settings: Any, tables: Mapping[str, StoredTable], options: CheckpointOptions
               ) -> Callable[[tf.Session], None] | None:
    """Lets variables begin with the values that `WarmStartSettings` name.

    `tf.train.warm_start` copies rows as they lie. Those that lie otherwise here are put into
    their places after it.

    Args:
      settings: the `WarmStartSettings`.
      tables: of the engine in the default graph, by variable name.
      options: of the job.

    Returns:
      What to run in a session once variables are initialized, or `None`.

    Raises:
      IncompatibleCheckpointError: E610 if nobody says how rows are ordered, or if they are to be
        ordered by another vocabulary as well.
      CorruptCheckpointError: if the checkpoint cannot be read.
    """
    before = {id(one): one.initializer for one in tf.global_variables()}
    tf.train.warm_start(*settings)
    checkpoint = _checkpoint_of(settings.ckpt_to_initialize_from)
    if checkpoint is None:
        return None
    manifest = read_manifest(checkpoint)
    moved = []
    for table_name, table in tables.items():
        for name in (table_name, *[f'{table_name}/{slot}' for slot in table.slots]):
            parts = variables_by_name()[name][1]
            if all(part.initializer is before[id(part)] for part in parts):
                continue  # It is not to be started.
            tensor = settings.var_name_to_prev_var_name.get(name, name)
            source = Source(tensor, _order_of(manifest, tensor, table, options, checkpoint),
                            partition_of(table))
            if not source.lies_alike:
                _check_vocabulary(name, settings, source)
                moved.append(StreamedRows(name, parts, source))

    def fill(session: tf.Session) -> None:
        for rows in moved:
            rows.restore(session, checkpoint)

    return fill if moved else None


def _checkpoint_of(source: str) -> str | None:
    """The prefix of what a warm start names; `None` for a directory without checkpoints."""
    return recover.newest_checkpoint(source) if os.path.isdir(source) else source


def _check_vocabulary(name: str, settings: Any, source: Source) -> None:
    """Makes sure that rows change places for one reason only."""
    if name in settings.var_name_to_vocab_info:
        raise IncompatibleCheckpointError(Problem(
            'E610', f'warm start of "{name}"', 'rows that another vocabulary orders must be div '
            'there and here', f'{source.stored.strategy} there, {source.here.strategy} here',
            'Leave out its VocabInfo, or start with div.'))


def scaffold_for(scaffold: tf.train.Scaffold, fill: Callable[[tf.Session], None]
                 ) -> tf.train.Scaffold:
    """A scaffold that runs what `start_warm` returned before the `init_fn` of another."""
    theirs = scaffold.init_fn

    def init_fn(_: tf.train.Scaffold, session: tf.Session) -> None:
        fill(session)
        if theirs is not None:
            theirs(session)

    return tf.train.Scaffold(init_fn=init_fn, copy_from_scaffold=scaffold)


def _order_of(manifest: Manifest | None, tensor: str, table: StoredTable,
              options: CheckpointOptions, checkpoint: str) -> Partition:
    """How rows are ordered in the tensor that a table or slot starts from."""
    by_tensor = {} if manifest is None else {
        f'{name}{slot}': stored for name, stored in manifest.tables.items()
        for slot in ('', *[f'/{suffix}' for suffix in stored.slots])}
    if tensor in by_tensor:
        return partition_of(by_tensor[tensor])
    by_id = Partition(strategy=STORED_BY_ID[0], vocabulary_size=table.rows, num_hosts=1)
    if manifest is not None or checkpoint.endswith(_IN_EXPORTS):
        return by_id
    assumed = options.assumed_order()
    if assumed is None and not partition_of(table).stores_by_id:
        raise IncompatibleCheckpointError(Problem(
            'E610', f'warm start from {checkpoint}', f'the rows of "{tensor}" mean ids only '
            'with the manifest that says how they are ordered', 'no manifest', 'If you know it: '
            '--assume mod:H for H hosts, or --assume div; CheckpointOptions(assume=...).'))
    return by_id if assumed is None else Partition(
        strategy=assumed[0], vocabulary_size=table.rows, num_hosts=assumed[1])
