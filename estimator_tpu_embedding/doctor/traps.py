"""Judges the constructs of all files: traps, and how TPU-only calls are emulated."""

from __future__ import annotations

from collections.abc import Sequence

from .facts import Finding, ScannedFile


def findings_of(files: Sequence[ScannedFile], needs_tf1: bool) -> list[Finding]:
    """Returns the findings W211 to W217, E104, E122 and I311 of all files."""
    raise NotImplementedError
