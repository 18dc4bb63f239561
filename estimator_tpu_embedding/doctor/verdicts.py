"""Judges every name: which flag, package or other name helps, or why nothing does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .facts import Finding, ScannedFile, Use
from .oracle import Answers


class Flags(NamedTuple):
    """Which flags of `etpe run` a program needs, and for which names.

    Attributes:
      tf1: uses that need `--tf1`, in order; none if the program runs without it.
      contrib: uses that need `--contrib`.
    """

    tf1: Sequence[Use] = ()
    contrib: Sequence[Use] = ()


class Judged(NamedTuple):
    """What became of all names.

    Attributes:
      findings: in no particular order, without repetitions.
      verdicts: how many uses have each of `facts.VERDICTS`.
      flags: by path of each file, what it needs with all files of the project that it imports.
      project: what all files together need.
    """

    findings: Sequence[Finding]
    verdicts: Mapping[str, int]
    flags: Mapping[str, Flags]
    project: Flags


def judge(files: Sequence[ScannedFile], answers: Answers) -> Judged:
    """Judges all uses of all files.

    Args:
      files: all files of the project; their `unknown` and `problems` are findings already.
      answers: of `oracle.ask` about `use.question` of all their uses.
    """
    raise NotImplementedError
