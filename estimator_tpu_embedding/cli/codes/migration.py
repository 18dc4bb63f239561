"""The codes E65x."""

from __future__ import annotations

ENTRIES: dict[str, tuple[str, str, str]] = {}
