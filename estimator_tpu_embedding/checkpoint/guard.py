"""Checks the files of a new checkpoint before they are published: shapes, and finite numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from ..errors import CheckpointWriteError, NonFiniteCheckpointError, Problem, shown
from .bundle import Bundle
from .layout import Held
from .manifest import Manifest, StoredFile
from .scan import scan


def complete_manifest(prefix: str, step: int, last: str | None,
                      manifest: Callable[[dict[str, StoredFile]], Manifest],
                      hashed: Mapping[str, StoredFile] = {}) -> Manifest:
    """Returns the manifest of files that may be published.

    Args:
      prefix: of the files.
      step: of the model.
      last: the name of the last good checkpoint, for messages; `None` if there is none.
      manifest: makes the manifest from the sizes and hashes of the files. Tables that the files
        do not hold are left out: a saver of the user may save a part of the model.
      hashed: of files that need not be hashed.

    Raises:
      NonFiniteCheckpointError: E620 if a number is not finite.
      CheckpointWriteError: E621 if a slot of a table is missing, or a tensor has another shape.
      CorruptCheckpointError: if a file cannot be read.
    """
    remedy = ('There is no checkpoint before it.' if last is None
              else f'{last} is the last good checkpoint.')
    files, nonfinite = scan(prefix, hashed)
    if nonfinite:
        raise NonFiniteCheckpointError(*[Problem(
            'E620', f'variable "{shown(name, 200)}" at step {step}',
            'all numbers of a checkpoint must be finite',
            f'{rows} rows with NaN or infinity', remedy, step)
            for name, rows in nonfinite.items()])
    complete = manifest(files)
    held = Held.of(Bundle.open(prefix), complete)
    complete = dataclasses.replace(complete, tables={
        name: table for name, table in complete.tables.items() if name in held.shapes})
    wrong = [f'"{shown(name, 200)}"' for variable, table in complete.tables.items()
             for name in held.lacking(variable, table)]
    if wrong:
        raise CheckpointWriteError(Problem(
            'E621', f'step {step}', 'what was written must hold the tables of the plan',
            f'nothing, or another shape, for {", ".join(wrong[:10])}',
            'A saver of the model must save all variables. ' + remedy))
    return complete
