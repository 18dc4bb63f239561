"""What holds in this process for jobs that do not say it: the emulated system, ids, kernels."""

from __future__ import annotations

import dataclasses

from ..errors import ConfigError, Problem
from .kernels import Kernels, checked
from .specs import ID_POLICIES, Topology


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """An emulated system.

    Attributes:
      topology: its size.
      is_explicit: whether someone asked for this size; else `TPUConfig.num_shards` may set it.
    """

    topology: Topology
    is_explicit: bool


_default = System(Topology(), is_explicit=False)


def default_system() -> System:
    """The system that every resolver means that is not told a size."""
    return _default


def system_of(hosts: int | None, cores: int | None) -> System:
    """The system of a stated size; where one number is `None` it is 1.

    Raises:
      ConfigError: if a number is out of range.
    """
    topology = Topology(num_hosts=1 if hosts is None else hosts,
                        cores_per_host=1 if cores is None else cores)
    problems = list(topology.problems())
    if problems:
        raise ConfigError(*problems)
    return System(topology, is_explicit=hosts is not None or cores is not None)


def set_default_system(hosts: int | None, cores: int | None) -> None:
    """Sets the size of the default system, as `system_of` has it."""
    global _default
    _default = system_of(hosts, cores)


_default_id_policy = 'error'


def default_id_policy() -> str:
    """What becomes of ids out of range in jobs that do not say it."""
    return _default_id_policy


def set_default_id_policy(policy: str | None) -> None:
    """Sets what becomes of ids out of range, `'error'` if `None`.

    Raises:
      ConfigError: for another word than those of `core.specs.ID_POLICIES`.
    """
    global _default_id_policy
    if policy not in (None, *ID_POLICIES):
        raise ConfigError(Problem('E438', 'ids', 'the policy for ids out of range must be one of '
                                  f'{", ".join(ID_POLICIES)}', repr(policy)))
    _default_id_policy = policy or 'error'


_default_kernels = Kernels()


def default_kernels() -> Kernels:
    """What executes the tables of jobs that do not say it."""
    return _default_kernels


def set_default_kernels(kernels: Kernels) -> None:
    """Sets what `default_kernels` says.

    Raises:
      ConfigError: for an unknown word, or a number of threads out of range.
    """
    global _default_kernels
    _default_kernels = checked(kernels, 'etpe run or install()')
