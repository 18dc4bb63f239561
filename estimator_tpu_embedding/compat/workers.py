"""Contacts the workers of the process before a script runs: its first lines tell of them."""

from __future__ import annotations

from .. import defaults
from ..cluster.cluster import current
from ..runner.progress import announce


def contact() -> None:
    """Finds or starts the workers that `install()` chose, and announces them.

    Workers that a script names itself are found when its first job begins.

    Raises:
      The errors of `Cluster.prepare`.
    """
    choice = defaults.current().cluster
    if choice.is_used:
        current(choice, announce).prepare()
