"""Asks several workers at once who they are, for people who want to see it."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ConfigError
from . import addresses, control

REFUSED = 'connection refused: nobody listens there'
_Found = TypeVar('_Found')


def at(text: str, deadline: float) -> list[dict[str, Any]]:
    """Returns what each worker says about itself, in order.

    Args:
      text: addresses, separated by commas.
      deadline: seconds for each answer; all are asked at the same time.

    Returns:
      The status of each, with its `address`, and `why_not` if it did not answer.

    Raises:
      ConfigError: with every problem of the addresses; then nobody was contacted.
    """
    given = addresses.listed(text)
    if problems := list(addresses.problems(given)):
        raise ConfigError(*problems)

    def look(address: str) -> dict[str, Any]:
        place = addresses.parsed(address)
        if place is not None and addresses.is_refused(place, deadline):
            return {'address': address, 'why_not': REFUSED}
        try:
            return {**control.ask(address, 'status', deadline=deadline),
                    'address': address, 'why_not': ''}
        except control.NoAnswerError as error:
            return {'address': address, 'why_not': str(error)}

    return for_all(given, look)


def for_all(given: Sequence[str], work: Callable[[str], _Found]) -> list[_Found]:
    """Returns what a function finds about each address, at the same time, in order."""
    with concurrent.futures.ThreadPoolExecutor(max(len(given), 1), 'ask-all') as pool:
        return list(pool.map(work, given))
