"""Collects the calls and constants of a file that `traps` judges."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Protocol

from .facts import Fact, Place


class Names(Protocol):
    """The names of one file, as `doctor/names.py` resolves them."""

    def resolve(self, node: ast.expr) -> str | None:
        """The whole path of an expression, such as `'tensorflow.contrib.tpu.TPUConfig'`."""


def facts_of(tree: ast.Module, names: Names, place_of: Callable[[ast.AST], Place]) -> list[Fact]:
    """Returns the facts of one file, or of one cell of a notebook, in the order of the source."""
    raise NotImplementedError
