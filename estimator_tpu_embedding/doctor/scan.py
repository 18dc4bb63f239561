"""Scans files one by one: keeps what they say, and no tree."""

from __future__ import annotations

from .facts import ScannedFile
from .project import Project
from .sources import Found, Source


def scan(found: Found) -> list[ScannedFile]:
    """Scans all files, and those of the same project that they import from outside of the paths."""
    raise NotImplementedError


def scan_file(source: Source, project: Project) -> ScannedFile:
    """Scans one file.

    Args:
      source: what `sources.read` returned.
      project: says what modules of the project hand out; `Project()` knows no other file.
    """
    raise NotImplementedError
