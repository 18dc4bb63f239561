"""Reads JSON objects that strangers wrote, and computes the hashes that they hold of themselves."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def parsed(content: bytearray, most: int) -> dict[str, Any]:
    """Returns a JSON object whose keys differ, of which each reader could take another value.

    Args:
      content: its text.
      most: the most values in it: three bytes may become an object of a hundred.

    Raises:
      ValueError: if it is none, or has more. RecursionError: if it is nested too deeply.

    >>> parsed(bytearray(b'{"rows": 5}'), 10)
    {'rows': 5}
    """
    if sum(map(content.count, (b',', b'[', b'{'))) > most:
        raise ValueError(f'more than {most:,} values')
    found = json.loads(content, object_pairs_hook=_without_duplicates)
    if not isinstance(found, dict):
        raise ValueError('no JSON object')
    return found


def sha256_of(fields: dict[str, Any]) -> str:
    """Returns the SHA-256 of an object in hexadecimal digits, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError('a key occurs twice')
    return fields
