"""Turns problems, counts, times and numbers into what people and programs read."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from typing import Any

from ...errors import Problem
from ..report import Line


def as_data(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Returns problems for programs: a code and a message each."""
    return [{'code': problem.code, 'message': str(problem)} for problem in problems]


def as_lines(problems: Iterable[Problem], tone: str = 'bad') -> list[Line]:
    """Returns problems for people."""
    return [Line(str(problem), tone) for problem in problems]


def count_text(count: int, thing: str) -> str:
    """Returns a number of things.

    >>> count_text(1, 'row'), count_text(1200, 'row')
    ('1 row', '1,200 rows')
    """
    return f'{count:,} {thing}' if count == 1 else f'{count:,} {thing}s'


def time_text(seconds: float) -> str:
    """Returns a time for people; nothing if there is none."""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
            '%Y-%m-%d %H:%M:%S UTC') if seconds else ''
    except (OverflowError, ValueError, OSError):  # A manifest may say any number.
        return '?'


def json_number(value: float) -> float | str:
    """Returns a number as JSON can hold it."""
    return value if math.isfinite(value) else str(value)


def number_text(value: float | str | None) -> str:
    """Returns a number, or its text in JSON, for people."""
    if isinstance(value, float):
        return f'{value:.6g}'
    return f'{value:,}' if isinstance(value, int) else str('?' if value is None else value)
