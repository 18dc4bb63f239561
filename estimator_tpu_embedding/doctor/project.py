"""Knows which files are modules of the project, and what each hands out under which name."""

from __future__ import annotations

from .sources import Found


class Project:
    """The modules of the files that were found."""

    def __init__(self, found: Found | None = None):
        """Knows the files, and reads those that are imported when they are."""
