"""Adds values of cores; see `towers.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow.compat.v1 as tf

from ..errors import ConfigError, Problem
from ..hosts.placement import Placement, on


def added(values: Sequence[tf.Tensor], group: Sequence[int], placement: Placement | None
          ) -> tf.Tensor:
    """Returns the sum of the values of the cores of a group.

    Args:
      placement: the hosts of the cores, if the values of each host are to be added first.

    Raises:
      ConfigError: if the shapes differ, or some cores have several values, as an optimizer has.
    """
    _require_alike(values)
    shapes = [values[core].shape for core in group]
    if not all(shape.is_compatible_with(shapes[0]) for shape in shapes):
        raise unequal(f'values of the shapes {list(map(str, shapes))}')
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


def each_added(values: Sequence[Mapping[str, tf.Tensor]], group: Sequence[int],
               placement: Placement | None) -> dict[str, tf.Tensor]:
    """Returns for each key the sum of the values of all cores.

    The same values get one sum: tables without gradients of their own share their zeros.

    Raises:
      ConfigError: if a core lacks a key of another, or has a single value to sum.
    """
    _require_alike(values)
    for key in dict.fromkeys(key for own in values for key in own):
        having = [core for core, own in enumerate(values) if key in own]
        if len(having) < len(values):
            raise unequal(f'a gradient of {key} on cores {having} only')
    made: dict[tuple[int, ...], tf.Tensor] = {}
    sums = {}
    for key in values[0]:
        of_key = [own[key] for own in values]
        same = tuple(map(id, of_key))
        if same not in made:
            made[same] = added(of_key, group, placement)
        sums[key] = made[same]
    return sums


def _require_alike(values: Sequence[object]) -> None:
    """Refuses the sum of one value where other cores sum all gradients of an optimizer."""
    if len({isinstance(value, Mapping) for value in values}) > 1:
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
