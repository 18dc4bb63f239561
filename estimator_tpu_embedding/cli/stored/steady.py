"""Repeats a look at checkpoints if a training job deleted or changed one of them meanwhile.

A checkpoint that a job deleted is not damaged, so no command may report it as damaged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from ...checkpoint.file_names import INDEX, MANIFEST, parse
from ...checkpoint.rotation import LOOKS, Signature, is_gone, rotated_away, signature
from ...errors import CorruptCheckpointError
from ..report import Report


def report_of(paths: Sequence[str], look: Callable[[], Report]) -> Report:
    """Returns a report, which is made again if one of its checkpoints was deleted meanwhile.

    Args:
      paths: of checkpoints, or of directories in which one is chosen.
      look: makes the report.

    Raises:
      CheckpointError: E628 if a checkpoint that was named was deleted.
      CorruptCheckpointError: if `look` raises it and nothing changed.
    """
    watched = [path if os.path.isdir(path) or (part := parse(path)) is None else part.checkpoint
               for path in paths]
    for number in range(LOOKS):
        before = [_state(path) for path in watched]
        try:
            report = look()
        except CorruptCheckpointError:
            if number == LOOKS - 1 or before == [_state(path) for path in watched]:
                raise
        else:
            if not report.data.get('findings') or number == LOOKS - 1 or (
                    before == [_state(path) for path in watched]):
                return report
        for path, state in zip(watched, before):
            if not os.path.isdir(path) and state and is_gone(path):
                raise rotated_away(path)
    raise AssertionError('the last look returns or raises')


def _state(path: str) -> Signature | list[str]:
    """Returns something that changes when a job saves a checkpoint or deletes one."""
    if not os.path.isdir(path):
        return signature(path)
    return sorted(name for name in os.listdir(path) if name.endswith((MANIFEST, INDEX)))
