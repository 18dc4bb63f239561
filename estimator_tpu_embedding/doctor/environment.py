"""Describes what is installed, what conflicts, and what `etpe run` will set."""

from __future__ import annotations

from .facts import Finding


def describe() -> tuple[list[tuple[str, str]], list[Finding]]:
    """Returns (what, its state) for people, and the findings E111 and W221 about packages.

    It imports none of them.
    """
    raise NotImplementedError
