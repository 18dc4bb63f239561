"""Finds the files of a project and reads them, without a traceback for any that a stranger wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .facts import Finding


class Found(NamedTuple):
    """Files to scan.

    Attributes:
      files: paths of `.py` and `.ipynb` files, as the user reaches them, each once, in order.
      left_out: folders and files that are not scanned, and why.
      problems: paths that the user named and nobody can read (E132).
      roots: the folders that the user named, and the folders of files that they named.
    """

    files: Sequence[str]
    left_out: Sequence[tuple[str, str]] = ()
    problems: Sequence[Finding] = ()
    roots: Sequence[str] = ()


class Source(NamedTuple):
    """The text of one file.

    Attributes:
      path: of the file.
      cells: the text of a Python file, or of each code cell of a notebook, with `pass` for lines of
        IPython; each character is one column.
      is_notebook: whether its places have the number of a cell.
      problems: why there is no text (E132), or none of a cell.
    """

    path: str
    cells: Sequence[str]
    is_notebook: bool = False
    problems: Sequence[Finding] = ()


def find(paths: Iterable[str]) -> Found:
    """Finds Python files and notebooks below some paths.

    Args:
      paths: files and folders; each is scanned, whatever its name is.
    """
    raise NotImplementedError


def read(path: str) -> Source:
    """Reads one file as Python would; what cannot be read is one of its problems."""
    raise NotImplementedError
