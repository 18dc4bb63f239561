"""Starts tables with rows of another job's checkpoint, so that each id gets its own row."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.partition import Partition
from ..errors import CorruptCheckpointError, IncompatibleCheckpointError, Problem, shown
from ..proto import files
from . import recover
from .bundle import Bundle
from .file_names import INDEX, MANIFEST
from .manifest import StoredTable, read_manifest, tensors_of
from .options import CheckpointOptions
from .restore import StreamedRows, variables_by_name
from .restore_plan import Sign, Source, sign_of_mod, tables_out_of_order, unknown_order

_IN_EXPORTS = os.path.join('variables', 'variables')
"""The prefix of the variables in a SavedModel, whose tables are in the order of ids."""


def resolved(settings: Any, options: CheckpointOptions) -> Any:
    """Returns `WarmStartSettings` with the checkpoint that is meant in the place of a directory.

    TensorFlow would take the one that the file `checkpoint` names, which may be another one. A path
    on a disk becomes absolute, since the tasks of a cluster have other working directories.
    CorruptCheckpointError if it is not whole.
    """
    source = settings.ckpt_to_initialize_from
    checkpoint = checkpoint_of(source if '://' in source else os.path.abspath(source), options)
    return (settings if checkpoint is None
            else settings._replace(ckpt_to_initialize_from=checkpoint))


def checkpoint_of(source: str, options: CheckpointOptions) -> str | None:
    """Returns the prefix of the checkpoint that a warm start names, after verifying it.

    It is `None` if a directory has no checkpoint. Of the options all count but `expected_digest`,
    which is about the job's own checkpoint. E617 if it is a pipe or the like.
    """
    options = dataclasses.replace(options, expected_digest=None)
    if os.path.isdir(source):
        found = recover.recover(source, options)
        return found.prefix if found is not None else None
    if any(map(os.path.lexists, (source + INDEX, source + MANIFEST))):
        recover.verify(source, options)
    elif os.path.exists(source):  # If not, TensorFlow says that it is missing.
        _require_file(source)
    return source


def _require_file(source: str) -> None:
    """Makes sure that TensorFlow can safely read a file as a checkpoint of an old format."""
    try:
        files.open_regular(source, follow=True).close()
    except OSError as error:
        raise CorruptCheckpointError(Problem(
            'E617', f'warm start from {shown(source, 300)}', 'it must be a checkpoint or a '
            'directory of checkpoints', shown(error.strerror or error),
            'Name a checkpoint such as dir/model.ckpt-7.')) from error


def check_order_for_warm_start(checkpoint: str, options: CheckpointOptions) -> None:
    """Refuses (E610) a warm start without the engine that would give ids the rows of others."""
    problems = [
        Problem('E610', f'warm start from {checkpoint}', 'with use_tpu=False rows must be in the '
                'order of ids', f'mod rows of {table.hosts} hosts for table "{name}"',
                'Start from an export of that model.')
        for name, table in tables_out_of_order(read_manifest(checkpoint)).items()]
    sign = _sign(checkpoint, options)
    if sign is not None:
        problems.append(unknown_order(
            'E610', f'warm start from {checkpoint}', 'its tables', sign))
    if problems:
        raise IncompatibleCheckpointError(*problems)


def _sign(checkpoint: str, options: CheckpointOptions) -> Sign | None:
    """Returns a sign that rows are `mod`, if neither a manifest nor an option says their order."""
    is_known = (options.assume is not None or checkpoint.endswith(_IN_EXPORTS)
                or read_manifest(checkpoint) is not None)
    return None if is_known else sign_of_mod(checkpoint)


def start_warm(settings: Any, tables: Mapping[str, StoredTable], options: CheckpointOptions
               ) -> Callable[[tf.Session], None] | None:
    """Lets variables begin with the values that `WarmStartSettings` name.

    `tf.train.warm_start` copies rows in the order in which they are stored. Rows that have other
    places in the graph are put there by the function that is returned, if any. It must be called
    with a session once variables are initialized. E610 if nothing says how rows are ordered, or if
    another vocabulary reorders them as well.
    """
    before = {id(one): one.initializer for one in tf.global_variables()}
    settings = resolved(settings, options)
    checkpoint = settings.ckpt_to_initialize_from
    tf.train.warm_start(*settings)
    manifest, sign = read_manifest(checkpoint), _sign(checkpoint, options)
    orders = {} if manifest is None else {
        tensor: stored.partition for variable, stored in manifest.tables.items()
        for tensor in tensors_of(variable, stored)}
    is_by_id = manifest is not None or checkpoint.endswith(_IN_EXPORTS)
    variables, moved = variables_by_name(), []
    for variable, table in tables.items():
        for name in tensors_of(variable, table):
            parts = variables[name][1]
            if all(part.initializer is before[id(part)] for part in parts):
                continue  # It is not to be started.
            tensor = settings.var_name_to_prev_var_name.get(name, name)
            order = orders.get(tensor) or (Partition.by_id(table.rows) if is_by_id else _order_of(
                tensor, table, options, checkpoint, sign))
            source = Source(tensor, order, table.partition)
            if not source.lies_alike:
                _check_vocabulary(name, settings, source)
                moved.append(StreamedRows(name, parts, source))

    def fill(session: tf.Session) -> None:
        bundle = Bundle.open(checkpoint)
        for rows in moved:
            rows.restore(session, bundle)

    return fill if moved else None


def _check_vocabulary(name: str, settings: Any, source: Source) -> None:
    """Makes sure that rows change places for one reason only: order, or another vocabulary."""
    if name in settings.var_name_to_vocab_info:
        raise IncompatibleCheckpointError(Problem(
            'E610', f'warm start of "{name}"', 'rows that another vocabulary orders must be div '
            'there and here', f'{source.stored.strategy} there, {source.here.strategy} here',
            'Leave out its VocabInfo, or start with div.'))


def _order_of(tensor: str, table: StoredTable, options: CheckpointOptions, checkpoint: str,
              sign: Sign | None) -> Partition:
    """Returns the order of rows in a tensor of which nothing states it for certain."""
    assumed = options.assumed_order()
    if sign is not None or assumed is None and not table.partition.stores_by_id:
        raise IncompatibleCheckpointError(unknown_order(
            'E610', f'warm start from {checkpoint}', f'"{shown(tensor, 255)}"', sign))
    return Partition.by_id(table.rows) if assumed is None else Partition(
        strategy=assumed[0], vocabulary_size=table.rows, num_hosts=assumed[1])
