"""Says which processes are the hosts of a job; checks that before any of them is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from ..core import limits
from ..core.specs import is_count
from ..errors import Problem
from . import addresses

FROM_SCRIPT = 'from-script'


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterChoice:
    """The processes that hold the shards of a job. At most one of the first three is given.

    Attributes:
      workers: addresses of workers, one per host, such as `('10.0.0.3:8470', '10.0.0.4:8470')`.
      processes: workers that the job starts for itself on this machine; 0 is none.
      is_from_script: whether the addresses that a script gives its resolver, or as `master`, are
        workers. Otherwise they mean the emulated system.
      expose: whether servers may listen where other machines reach them.
      connect_deadline: seconds until all workers must have answered, > 0.
      worker_deadline: seconds in which a lost worker must come back, > 0.
      step_deadline: seconds that a call of a session may take, such as a step or a save, > 0;
        `None` is no limit.

    >>> ClusterChoice().is_used, ClusterChoice(processes=2).num_hosts
    (False, 2)
    >>> print(*ClusterChoice(('10.0.0.3:8470', '10.0.0.3:8470')).problems())
    E703 worker 1: each worker must be another process; got the address of worker 0: \
10.0.0.3:8470.  Leave one out.
    """

    workers: tuple[str, ...] = ()
    processes: int = 0
    expose: bool = False
    connect_deadline: float = 60.0
    worker_deadline: float = 120.0
    is_from_script: bool = False
    step_deadline: float | None = None

    @classmethod
    def of(cls, workers: str | Sequence[str] | None, processes: int | None = None, *,
           expose: bool = False) -> ClusterChoice:
        """Returns what arguments of users mean, unchecked.

        `workers` has addresses, in a list or separated by commas; or it is `'from-script'`. A list
        or text without any address has problems: it does not mean that none are asked for.

        >>> ClusterChoice.of('10.0.0.3:8470,10.0.0.4:8470').num_hosts
        2
        """
        given = () if workers is None else addresses.listed(workers)
        is_from_script = given == (FROM_SCRIPT,)
        return cls(() if is_from_script else given, 0 if processes is None else processes, expose,
                   is_from_script=is_from_script)

    @property
    def num_hosts(self) -> int:
        """The number of hosts; 0 if all hosts are emulated."""
        return len(self.workers) or self.processes

    @property
    def is_used(self) -> bool:
        """Whether hosts are processes."""
        return self.num_hosts > 0

    def problems(self) -> Iterator[Problem]:
        """Yields every problem of these choices. Names are looked up, but nobody is contacted."""
        if bool(self.workers) + bool(self.processes) + self.is_from_script > 1:
            yield Problem('E701', 'cluster', 'either workers are given or processes are started',
                          'both', 'Leave one out.')
        if not is_count(self.processes, 0, limits.MAX_HOSTS):
            yield Problem('E701', 'cluster', 'the number of processes must be in '
                          f'[1, {limits.MAX_HOSTS}]', repr(self.processes))
        if len(self.workers) > limits.MAX_HOSTS:
            yield Problem('E701', 'cluster', f'there must be at most {limits.MAX_HOSTS} workers',
                          str(len(self.workers)))
        for name in ('connect_deadline', 'worker_deadline', 'step_deadline'):
            seconds = getattr(self, name)
            if seconds is None and name == 'step_deadline':
                continue
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not (
                    0 < seconds < float('inf')):
                yield Problem('E701', f'cluster {name}', 'it must be a number of seconds above 0',
                              repr(seconds))
        yield from addresses.problems(self.workers)

    def hosts_problem(self, stated: int | None) -> Problem | None:
        """Returns the problem of a number of hosts that somebody stated; `None` is unstated."""
        if stated is None or not self.is_used or stated == self.num_hosts:
            return None
        return Problem('E710', 'hosts', 'each host is one worker, so there are '
                       f'{self.num_hosts}', str(stated),
                       'Leave the number of hosts out: it follows from the workers.')
