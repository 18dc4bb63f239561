"""Adds values of cores; see `towers.py`."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from ..errors import ConfigError, Problem
from ..hosts.placement import Placement, on


def added(values: Sequence[tf.Tensor], group: Sequence[int], placement: Placement | None
          ) -> tf.Tensor:
    """Returns the sum of the values of the cores of a group.

    Args:
      values: of all cores.
      group: cores.
      placement: the hosts of the cores, if the values of each host are to be added first.

    Raises:
      ConfigError: if some cores have several values, as an optimizer has.
    """
    _require_alike(values)
    if placement is None:
        return tf.add_n([values[core] for core in group])
    of_hosts: dict[int, list[tf.Tensor]] = {}
    for core in sorted(group):
        host = core // placement.topology.cores_per_host
        of_hosts.setdefault(host, []).append(values[core])
    sums = []
    for host, own in of_hosts.items():
        with on(placement.host(host)):
            # Otherwise TensorFlow would add all values at once where they are on one device.
            sums.append(tf.ensure_shape(tf.add_n(own), own[0].shape))
    with on(placement.host(min(of_hosts))):
        return tf.add_n(sums)


def each_added(lists: Sequence[Sequence[tf.Tensor]], group: Sequence[int],
               placement: Placement | None) -> list[tf.Tensor]:
    """Returns the sums of the first values of all cores, of the second ones, and so on.

    The same values get one sum: tables without gradients of their own share their zeros.

    Raises:
      ConfigError: if a core has more values than another, or a single one to sum.
    """
    _require_alike(lists)
    if len({len(values) for values in lists}) > 1:
        raise unequal(f'gradients per core: {[len(values) for values in lists]}')
    made: dict[tuple[int, ...], tf.Tensor] = {}
    sums = []
    for values in zip(*lists):
        key = tuple(map(id, values))
        if key not in made:
            made[key] = added(values, group, placement)
        sums.append(made[key])
    return sums


def _require_alike(values: Sequence[object]) -> None:
    """Refuses the sum of one value where other cores sum all gradients of an optimizer."""
    if len({isinstance(value, list) for value in values}) > 1:
        raise unequal('gradients of an optimizer on some cores, another value on others')


def unequal(got: str) -> ConfigError:
    """Returns the error of a model that does not sum the same on every core."""
    return ConfigError(Problem(
        'E451', 'model_fn', 'it must sum over replicas equally often on every core', got,
        'Do not make the structure of the model depend on the core.'))


def group_of(core: int, groups: Sequence[Sequence[int]] | None, count: int) -> tuple[int, ...]:
    """Returns the group of a core; without groups, all cores.

    Raises:
      ValueError: if not each of `count` cores is in one group.
    """
    if not groups:
        return tuple(range(count))
    if sorted(each for group in groups for each in group) != list(range(count)):
        raise ValueError('Argument `group_assignment` must be a permutation of '
                         f'range({count}). Received: {groups}')
    return next(tuple(group) for group in groups if core in group)
