"""Writes the `etpe run` line of each program, with a reason per flag and what stops it first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .facts import Finding, Prescription, ScannedFile


def prescriptions(files: Sequence[ScannedFile], findings: Sequence[Finding],
                  flags: Mapping[str, Mapping[str, str]]) -> list[Prescription]:
    """Returns how to run each program of the project.

    Args:
      files: all that were scanned.
      findings: all findings about them that are not ignored.
      flags: by the path of a file, the flags that its own names need, with a reason each, such as
        `{'train.py': {'--tf1': 'tf.placeholder (line 7) and 12 other names'}}`.
    """
    raise NotImplementedError
