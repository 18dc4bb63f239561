"""Looks at checkpoints beside a job that saves and deletes them: what it deleted is no damage."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..checkpoint.file_names import INDEX, MANIFEST, parse
from ..checkpoint.steady import LOOKS, Signature, is_gone, rotated_away, signature
from ..errors import CorruptCheckpointError
from .render import Report

_T = TypeVar('_T')


def of_one(prefix: str, look: Callable[[], _T], is_sound: Callable[[_T], bool]) -> _T | None:
    """What is seen of a checkpoint; `None` if it was deleted before all of it was seen.

    Args:
      prefix: of it.
      look: is called again if the checkpoint changed meanwhile and does not seem sound.
      is_sound: whether what `look` returned says so.
    """
    seen = None
    for _ in range(LOOKS):
        before = signature(prefix)
        seen = look()
        if is_sound(seen):
            return seen
        if before == signature(prefix) and before:
            return seen
        if is_gone(prefix):
            return None
    return seen


def at_what_stays(paths: Sequence[str], look: Callable[[], Report]) -> Report:
    """A report about checkpoints, made again where one of them was deleted meanwhile.

    Args:
      paths: of checkpoints, or of directories, of which one is chosen.
      look: makes the report.

    Raises:
      CheckpointError: E628 if a checkpoint that was named was deleted.
      CorruptCheckpointError: whatever `look` raises of checkpoints that are there.
    """
    paths = [path if os.path.isdir(path) or (part := parse(path)) is None else part.checkpoint
             for path in paths]
    for number in range(LOOKS):
        before = [_state(path) for path in paths]
        try:
            report = look()
            if not report.data.get('findings'):
                return report
        except CorruptCheckpointError:
            if number == LOOKS - 1 or before == [_state(path) for path in paths]:
                raise
        else:
            if number == LOOKS - 1 or before == [_state(path) for path in paths]:
                return report
        for path, state in zip(paths, before):
            if not os.path.isdir(path) and state and is_gone(path):
                raise rotated_away(path)
    raise AssertionError('the last look returns or raises')


def _state(path: str) -> Signature | list[str]:
    """What changes when a job saves a checkpoint or deletes one."""
    if not os.path.isdir(path):
        return signature(path)
    return sorted(name for name in os.listdir(path) if name.endswith((MANIFEST, INDEX)))
