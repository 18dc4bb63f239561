"""Finds the workers of a job: those of its RunConfig, of the process, or of its script."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from .. import defaults
from ..cluster import addresses
from ..cluster.choice import ClusterChoice
from ..cluster.cluster import Cluster, current
from ..errors import ConfigError, Problem, shown
from ..runner.progress import announce


def choice_of(config: Any) -> ClusterChoice:
    """Returns the processes that are the hosts of a job.

    Args:
      config: its RunConfig.

    Raises:
      ConfigError: E713 if the addresses of the script are asked for, and it has none; others with
        every problem of its addresses.
    """
    own, general = config.workers, defaults.current().cluster
    choice = dataclasses.replace(own if own.is_used or own.is_from_script else general,
                                 expose=general.expose, worker_deadline=own.worker_deadline,
                                 step_deadline=own.step_deadline)
    return choice_of_script(choice, _addresses_of_script(config))


def choice_of_script(choice: ClusterChoice, given: Sequence[str]) -> ClusterChoice:
    """Returns a choice with the addresses of a script in it, if it asks for them.

    Args:
      choice: the processes that are meant.
      given: the addresses that the script has for its TPU.

    Raises:
      ConfigError: see `choice_of`.
    """
    if not choice.is_from_script:
        return choice
    if not given or any(addresses.parsed(one) is None for one in given):
        raise ConfigError(Problem(
            'E713', 'cluster', 'the script must give its TPU as addresses, if they are asked for',
            shown(", ".join(given)) or 'none',
            'Give the addresses themselves: etpe run --workers 10.0.0.3:8470,10.0.0.4:8470.'))
    choice = dataclasses.replace(choice, workers=tuple(given), is_from_script=False)
    if problems := list(choice.problems()):
        raise ConfigError(*problems)
    return choice


def cluster_of(config: Any) -> Cluster | None:
    """Returns the cluster of a job; `None` if its hosts are emulated in this process.

    Raises:
      ConfigError: see `choice_of`.
    """
    choice = choice_of(config)
    return current(choice, announce) if choice.is_used else None


def _addresses_of_script(config: Any) -> tuple[str, ...]:
    """Returns the addresses that a script has for its TPU; its resolver comes first."""
    of_resolver = getattr(config.cluster, 'stated_addresses', ())
    return tuple(of_resolver or addresses.split(config.stated_master))
