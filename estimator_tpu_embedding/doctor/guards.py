"""Tells which uses of names a program must find, and which it can do without."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from .facts import Answer, Question, ScannedFile, Use
from .flags import Flags


def unguarded(files: Sequence[ScannedFile], answers: Mapping[Question, Answer],
              flags: Flags = Flags()) -> Mapping[str, frozenset[Use]]:
    """Returns by the path of each file which of its uses the program must find.

    These are all uses outside of any guard. A handler of a `try` is a guard for nothing: where
    the body fails, it must succeed, if no other `try` in it guards it in turn.

    Args:
      files: all files.
      answers: by question; what nobody answered is taken as found.
      flags: with which the program runs.
    """
    return {file.path: frozenset(_in_file(file.uses, answers, flags)) for file in files}


def is_found(answer: Answer | None, flags: Flags) -> bool:
    """Whether a program with these flags finds a name."""
    if answer is None:
        return True
    if flags.contrib and answer.contrib and not (answer.run or answer.tf1):
        return True
    return answer.tf1 if flags.tf1 else answer.run


def _in_file(uses: Sequence[Use], answers: Mapping[Question, Answer], flags: Flags) -> list[Use]:
    failing: collections.Counter[int] = collections.Counter()
    for use in uses:
        if not is_found(answers.get(use.question), flags):
            failing.update({number for number, branch in use.branches if branch == 0})
    return [use for use in uses if not use.is_guarded or _is_fallback_in_use(use, failing)]


def _is_fallback_in_use(use: Use, failing: Mapping[int, int]) -> bool:
    """Whether a use is in handlers only whose bodies fail, and the innermost guard is a handler."""
    return bool(use.branches) and use.branches[-1][1] > 0 and all(
        failing.get(number) for number, branch in use.branches if branch > 0)
