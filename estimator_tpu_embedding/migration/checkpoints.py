"""Migrates a checkpoint by a call, as `etpe migrate checkpoint` does by a command."""

from __future__ import annotations

import functools

from ..checkpoint.bundle import Bundle
from ..checkpoint.options import CheckpointOptions
from . import from_tf1, from_tf2, map_file
from .carry_out import Done, carry_out
from .contents import Contents, is_tf2
from .from_tf2 import Paths
from .plan import Choices, plan
from .target import Target


def read(prefix: str, paths: Paths = Paths(), map: map_file.Map = map_file.Map(),
         options: CheckpointOptions = CheckpointOptions()) -> Contents:
    """Reads what a checkpoint of either API holds.

    Args:
      prefix: of the checkpoint.
      paths: of its objects, if it is of TF2.
      map: its lines with `table` say which variables are tables.
      options: `assume` counts for TF1.

    Raises:
      CorruptCheckpointError: if it cannot be read.
      ConfigError: E653 if there are no tables at the path, E654 if the map calls something a table
        that cannot be one.
      IncompatibleCheckpointError: E652 if nothing says how the rows of tables are ordered, E655 if
        tables are stacked.
    """
    if is_tf2(Bundle.open(prefix)):
        return from_tf2.read(prefix, paths, map)
    return from_tf1.read(prefix, options, map)


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
    made = plan(read(prefix, paths, choices.map, options), target, choices)
    return carry_out(made, destination, overwrite=overwrite,
                     verify=functools.partial(recover.verify, prefix, options))
