"""Asks the installed libraries about all names at once, in child processes with a deadline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .facts import Answer, Question

DEADLINE = 60.
"""Seconds for all questions. Then those without an answer are unknown."""


class Answers(NamedTuple):
    """What the libraries said.

    Attributes:
      found: by question; a question that nobody answered is not there.
      reason: why some were not answered, such as `'TensorFlow is not installed'`; `''` if all were.
    """

    found: Mapping[Question, Answer]
    reason: str = ''


def ask(questions: Iterable[Question], scanned: Sequence[str], deadline: float = DEADLINE
        ) -> Answers:
    """Asks about all questions.

    Args:
      questions: of all files; repetitions are fine.
      scanned: paths of the files and folders that the user gave. Nothing is imported from them.
      deadline: seconds for all.
    """
    raise NotImplementedError
