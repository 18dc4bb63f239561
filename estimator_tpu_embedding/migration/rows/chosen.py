"""Finds the tables of a checkpoint whose rows can be exported, and their slots."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...checkpoint.bundle import Bundle
from ...checkpoint.layout import Held, is_slot, partition_of, stored_slots
from ...checkpoint.manifest import Manifest, StoredTable
from ...checkpoint.object_graph import Place, escaped, joined, unescaped
from ...checkpoint.tables_meant import meant
from ...checkpoint.tensors import NO_ROW
from ...core.partition import Partition
from ...errors import ConfigError, Problem, quoted, shown


class Chosen(NamedTuple):
    """A table to export.

    Attributes:
      name: of its variable.
      slots: its slots to export: (slot, name of the tensor).
      partition: of its rows and slots; `None` if they are in the order of ids.
    """

    name: str
    slots: Sequence[tuple[str, str]]
    partition: Partition | None

    @property
    def tensors(self) -> list[tuple[str, str]]:
        """(slot, name of the tensor) of the table, whose slot is `''`, and of its slots."""
        return [('', self.name), *self.slots]


def candidates(bundle: Bundle, tables: Mapping[str, StoredTable], manifest: Manifest | None
               ) -> dict[str, Chosen]:
    """Returns all tables, with all their slots, by name.

    Args:
      bundle: the checkpoint.
      tables: of its manifest; without one, tensors whose order the user stated.
      manifest: of the checkpoint.

    Returns:
      Also the variables of a checkpoint of TF2 that have the shape of a table. TF2 always stores
      rows in the order of ids, so these have no partition.
    """
    found = {name: Chosen(name, [(slot, f'{name}/{slot}') for slot in table.slots],
                          partition_of(table)) for name, table in tables.items()}
    if manifest is None:
        held = Held(bundle, None)
        found = {name: one._replace(slots=[
            (slot, f'{name}/{slot}') for slot in sorted(stored_slots(
                held, name, bundle.tensors[name].shape))])
            for name, one in found.items()
            if _is_matrix(bundle, name) and Place.of_key(name) is None
            and not is_slot(name, tables)}
    places = {key: place for key in bundle.tensors if _is_matrix(bundle, key)
              and (place := Place.of_key(key)) is not None}
    known = {tensor for one in found.values() for _, tensor in one.tensors}
    of_objects = {key: one for key, one in _of_objects(bundle, places)
                  if manifest is None or key not in known}
    return {**found, **of_objects}


def chosen(names: Sequence[str], found: Mapping[str, Chosen], with_slots: bool) -> list[Chosen]:
    """Returns the tables that names mean, in their order; without names, all that are known to be.

    Args:
      names: in full, or parts of names, as `CheckpointOptions` take them.
      found: by `candidates`.
      with_slots: whether slots are wanted too.

    Raises:
      ConfigError: E662 if a name means no table, or several; or if no table is known.
    """
    picked: dict[str, Chosen] = {}
    problems: list[Problem] = []
    for name in names or [name for name, one in found.items() if one.partition is not None]:
        several = meant(name, found)
        if len(several) == 1:
            one = found[several[0]]
            picked[one.name] = one if with_slots else one._replace(slots=[])
        else:
            problems += _unknown(name, several, found)
    if not picked and not problems:
        problems.append(Problem(
            'E662', '--table', 'it must say which variables are tables, as nothing else does here',
            'nothing', f'There: {quoted(shown(name, 200) for name in sorted(found)[:5])}.'))
    if problems:
        raise ConfigError(*problems)
    return list(picked.values())


def _unknown(name: str, several: Sequence[str], known: Collection[str]) -> Iterator[Problem]:
    there = quoted(shown(one, 200) for one in several[:5] or sorted(known)[:5])
    yield Problem(
        'E662', f'--table {shown(name, 200)}', 'it must name one table, in full or by parts of '
        'its name that no other has', 'several' if several else 'none of that name',
        f'There: {there}.')


def _is_matrix(bundle: Bundle, key: str) -> bool:
    tensor = bundle.tensors[key]
    return (len(tensor.shape) == 2 and min(tensor.shape) > 0 and tensor.is_float
            and key.isprintable()
            and all(piece.first_row != NO_ROW for piece in tensor.pieces))


def _of_objects(bundle: Bundle, places: Mapping[str, Place]) -> Iterator[tuple[str, Chosen]]:
    """Yields the variables that are no slots, by key.

    A slot of Keras says so in its key. An attribute `user/momenta` beside an attribute `user` of
    the same shape is a slot that a TPUEmbedding has made.
    """
    keys = {place: key for key, place in places.items()}
    slots: dict[str, list[tuple[str, str]]] = {}
    for key, place in places.items():
        above, _, last = place.path.rpartition('/')
        table, mark, slot = unescaped(last).rpartition('/')
        own = Place(place.path) if place.slot else Place(joined(above, escaped(table)))
        of = keys.get(own) if place.slot or mark else None
        if of is not None and bundle.tensors[of].shape == bundle.tensors[key].shape:
            slots.setdefault(of, []).append((place.slot or slot, key))
    all_slots = {key for found in slots.values() for _, key in found}
    for key, place in places.items():
        if not place.slot and key not in all_slots:
            yield key, Chosen(key, sorted(slots.get(key, [])), None)
