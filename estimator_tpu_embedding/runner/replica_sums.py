"""Sums values over the replicas of the model, which are the towers of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..hosts.placement import Placement, on
from .towers import current_core, towers_being_built, unequal


def cross_replica_sums(values: Mapping[str, Any],
                       group_assignment: Sequence[Sequence[int]] | None = None, *,
                       may_copy: bool = False) -> dict[str, tf.Tensor]:
    """Returns the sum of each value over all cores, or over those of a group. The towers meet once.

    Values of the same key are added, in whichever order the cores have them. Values that are the
    same on all cores have the same sum. Outside of towers, where there is one replica, a sum is
    the value.

    Args:
      values: tensors of the same shape and dtype on every core. Keys are nouns, for messages.
      group_assignment: lists of cores; each core is in exactly one. `None` is one group of all.
      may_copy: see `Towers.meet`.
    """
    tensors = {key: tf.convert_to_tensor(value) for key, value in values.items()}
    towers = towers_being_built()
    if towers is None or not tensors:
        return {key: tf.identity(value) for key, value in tensors.items()}
    group, placement = _group_of_core(group_assignment, towers.count), towers.placement
    return towers.meet(tensors, lambda values: _each_added(values, group, placement), group,
                       may_copy=may_copy and len(group) == towers.count)


def _group_of_core(groups: Sequence[Sequence[int]] | None, count: int) -> tuple[int, ...]:
    """Returns the group of the current core; without groups, all cores."""
    if not groups:
        return tuple(range(count))
    if sorted(each for group in groups for each in group) != list(range(count)):
        raise ValueError('Argument `group_assignment` must be a permutation of '
                         f'range({count}). Received: {groups}')
    return next(tuple(group) for group in groups if current_core() in group)


def _each_added(values: Sequence[Mapping[str, tf.Tensor]], group: Sequence[int],
                placement: Placement | None) -> dict[str, tf.Tensor]:
    """Returns for each key the sum of the values of the cores of a group.

    The same values get one sum: tables without gradients of their own share their zeros. With a
    placement, the values of each host are added first.
    """
    for key in dict.fromkeys(key for own in values for key in own):
        having = [core for core, own in enumerate(values) if key in own]
        if len(having) < len(values):
            raise unequal(f'{key} on cores {having} only')
    made: dict[tuple[int, ...], tf.Tensor] = {}
    sums = {}
    for key in values[0]:
        of_key = [own[key] for own in values]
        same = tuple(map(id, of_key))
        if same not in made:
            made[same] = _added(of_key, group, placement)
        sums[key] = made[same]
    return sums


def _added(values: Sequence[tf.Tensor], group: Sequence[int], placement: Placement | None
           ) -> tf.Tensor:
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
