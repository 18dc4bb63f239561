"""States which host calls input_fn for which cores, and how each batch reaches them.

One element of an input is one batch. `share` says how the cores of a call of input_fn use it:

| share | use of one element | samples in it |
|---|---|---|
| `'elements'` | one core takes it whole; the cores take turns | the batch of one core |
| `'split'` | it is cut into equal parts, one per core | the batches of all cores of the call |
| `'copies'` | every core gets it unchanged | the batch of one core |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .specs import Topology


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call of input_fn: its host and the cores that it feeds.

    Attributes:
      index: position among the calls of its run.
      name: for messages: `'host 0'`, or `'core 3'` if each core has its own call.
    """

    index: int
    host: int
    cores: Sequence[int]
    name: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The input of one run.

    Attributes:
      topology: hosts, and replicas of the model per host, which are called cores.
      system: real hosts and cores; differs from `topology` if a replica takes several cores.
      share: see the module.
      invocations: calls that together feed every core once.
      batch_size: samples of all cores per step.
      input_batch_size: samples of one element of the input.
      is_model_parallel: whether the job states how many cores a replica has, even if it is one.
    """

    topology: Topology
    system: Topology
    share: str
    invocations: tuple[Invocation, ...]
    batch_size: int
    batch_size_per_core: int
    input_batch_size: int
    is_model_parallel: bool = False

    @property
    def has_copies(self) -> bool:
        """Whether all cores get the same samples, so that core 0 has all of them."""
        return self.share == 'copies'


def per_host(topology: Topology) -> tuple[Invocation, ...]:
    """Returns one call on every host, for its cores.

    >>> [list(one.cores) for one in per_host(Topology(num_hosts=2, cores_per_host=3))]
    [[0, 1, 2], [3, 4, 5]]
    """
    return tuple(Invocation(index=host, host=host, cores=topology.cores_of(host),
                            name=f'host {host}') for host in range(topology.num_hosts))
