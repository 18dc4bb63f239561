"""Holds the defaults of this process for jobs that state no choice, such as the system's size.

`install()` and `etpe run` set them. This module is their only home: `set_current` replaces all of
them at once, and `current` reads them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from .checkpoint.options import CheckpointOptions
from .cluster.worker_choice import ClusterChoice
from .core.specs import BACKENDS, ID_POLICIES, Kernels, System
from .errors import ConfigError, Problem


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The choices of a process.

    Attributes:
      system: the emulated system of jobs whose resolver states no size.
      id_policy: the fate of ids out of range, one of `core.specs.ID_POLICIES`.
      kernels: the kernels that execute the tables, and their threads.
      checkpoint: the options of checkpoints.
      step_limit: the most steps that one call of `train()` makes, >= 1; `None` is no limit.
      cluster: the processes that are the hosts of jobs; with none all hosts are emulated.
      input_on_workers: whether those processes have the input of their hosts.
      backend: `'emulated'`, or `'tpu'` for the operations of a real TPU.
      graph_only: the directory where jobs for a TPU write their graphs, instead of running.

    >>> Defaults(id_policy='drop').step_limit is None
    True
    """

    system: System = System()
    id_policy: str = 'error'
    kernels: Kernels = Kernels()
    checkpoint: CheckpointOptions = CheckpointOptions()
    step_limit: int | None = None
    cluster: ClusterChoice = ClusterChoice()
    input_on_workers: bool = False
    backend: str = 'emulated'
    graph_only: str | None = None

    def problems(self) -> Iterator[Problem]:
        """Yields every problem of these choices."""
        yield from self.system.topology.problems()
        if self.id_policy not in ID_POLICIES:
            yield Problem('E438', 'ids', 'the policy for ids out of range must be one of '
                          f'{", ".join(ID_POLICIES)}', repr(self.id_policy))
        yield from self.kernels.problems('etpe run or install()')
        if self.step_limit is not None and self.step_limit < 1:
            yield Problem('E416', 'steps', 'it must be at least 1', str(self.step_limit))
        yield from self.cluster.problems()
        if self.backend not in BACKENDS:
            yield Problem('E940', 'backend', f'it must be one of {", ".join(BACKENDS)}',
                          repr(self.backend))
        if self.graph_only is not None and self.backend != 'tpu':
            yield Problem('E940', 'graph_only', 'only a job for a TPU has graphs to write',
                          f'backend "{self.backend}"',
                          'Add backend="tpu" (etpe run --backend tpu).')
        if self.backend == 'tpu' and self.cluster.is_used:
            yield Problem('E940', 'workers', 'they emulate a TPU', 'backend "tpu"',
                          'Leave out one of the two.')


_current = Defaults()


def current() -> Defaults:
    """Returns the choices that hold now."""
    return _current


def set_current(choices: Defaults) -> None:
    """Replaces all choices of this process.

    Raises:
      ConfigError: with every problem of them; then all stay as they were.
    """
    global _current
    problems = list(choices.problems())
    if problems:
        raise ConfigError(*problems)
    _current = choices


def system_of(resolver: object) -> System:
    """Returns the emulated system that a cluster resolver finds.

    Args:
      resolver: a `TPUClusterResolver` of this package; `None` and any other resolver find the
        system of this process.
    """
    found: System | None = getattr(resolver, 'emulated_system', None)
    return _current.system if found is None else found
