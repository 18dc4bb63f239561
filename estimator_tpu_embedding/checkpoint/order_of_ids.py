"""Refuses a checkpoint if a graph without the engine would give ids the rows of other ids.

Such a graph reads row `i` of a variable for id `i`, and does not know which variables are tables.
So tables must not be in `mod` order where nothing puts their rows into the order of ids.
"""

from __future__ import annotations

from ..core.partition import STORED_BY_ID
from ..errors import IncompatibleCheckpointError, Problem
from . import evidence
from .file_names import label
from .layout import tables_out_of_order
from .manifest import read_manifest
from .options import CheckpointOptions


def check_order_of_ids(checkpoint: str | None, options: CheckpointOptions) -> None:
    """Refuses a checkpoint from which training without the engine cannot continue.

    Args:
      checkpoint: its prefix; `None` is no checkpoint.
      options: only `assume` matters.

    Raises:
      IncompatibleCheckpointError: E609 if a table in it is `mod` on several hosts; E608 if one
        seems to be.
      CorruptCheckpointError: if its manifest cannot be read.
    """
    check_without_manifest(checkpoint, options)
    problems = [
        Problem('E609', label(checkpoint or ''),
                f'the rows of table "{name}" must be in the order of ids to be trained with '
                'use_tpu=False', f'mod rows of {table.hosts} hosts', 'Train it with use_tpu=True '
                'and partition_strategy="div" until its next checkpoint.')
        for name, table in tables_out_of_order(checkpoint).items()]
    if problems:
        raise IncompatibleCheckpointError(*problems)


def check_without_manifest(checkpoint: str | None, options: CheckpointOptions) -> None:
    """Refuses a checkpoint without a manifest if anything says that its rows are in `mod` order.

    Args:
      checkpoint: its prefix; `None` is no checkpoint.
      options: only `assume` matters.

    Raises:
      IncompatibleCheckpointError: E608 if something says it.
      CorruptCheckpointError: if there is a manifest that cannot be read.
    """
    if checkpoint is None or read_manifest(checkpoint) is not None:
        return
    order = options.assumed_order()
    if order is not None and order[0] not in STORED_BY_ID:
        raise IncompatibleCheckpointError(Problem(
            'E608', label(checkpoint), 'a graph without the engine needs the manifest that says '
            f'which tensors are {options.assume} tables', 'no manifest', 'Train with use_tpu=True '
            'from it for a step; the next one has it.'))
    sign = evidence.of_mod(checkpoint) if order is None else None
    if sign is not None:
        raise IncompatibleCheckpointError(
            evidence.problem('E608', label(checkpoint), 'its tables', sign))
