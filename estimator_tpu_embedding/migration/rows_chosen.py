"""Finds the tables of a checkpoint whose rows can be exported, and their slots."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence

from ..checkpoint.bundle import Bundle
from ..checkpoint.layout import Held, partition_of
from ..checkpoint.manifest import Manifest, StoredTable, tensors_of
from ..checkpoint.slots import is_slot, stored_slots
from ..checkpoint.tables_meant import meant
from ..checkpoint.tensors import NO_ROW
from ..errors import ConfigError, Problem, quoted, shown
from .rows_out import Chosen

_VALUE = '/.ATTRIBUTES/VARIABLE_VALUE'
"""How the keys of variables end in a checkpoint of objects."""
_SLOT_OF_KERAS = '/.OPTIMIZER_SLOT/'
_SLOT_OF_TABLE = '.S'


def candidates(bundle: Bundle, tables: Mapping[str, StoredTable], manifest: Manifest | None
               ) -> dict[str, Chosen]:
    """Returns all tables, with all their slots, by name.

    Args:
      bundle: the checkpoint.
      tables: of its manifest; without one, tensors whose order the user stated.
      manifest: of the checkpoint.

    Returns:
      Also the variables of a checkpoint of objects that have the shape of a table. TF2 always
      stores their rows in the order of ids.
    """
    found = {name: Chosen(name, [(slot, f'{name}/{slot}') for slot in table.slots],
                          partition_of(table)) for name, table in tables.items()}
    if manifest is None:
        held = Held.of(bundle, None)
        found = {name: one._replace(slots=[
            (slot, f'{name}/{slot}') for slot in sorted(stored_slots(
                held, name, bundle.tensors[name].shape))])
            for name, one in found.items() if not is_slot(name, tables)}
    known = {tensor for name, table in tables.items() for tensor in tensors_of(name, table)}
    for key in bundle.tensors:
        if key.endswith(_VALUE) and _is_matrix(bundle, key) and not _is_slot_key(key) and (
                manifest is None or key not in known):
            found[key] = Chosen(key, sorted(_slots_of_object(bundle, key)), None)
    return found


def chosen(names: Sequence[str], found: Mapping[str, Chosen], with_slots: bool) -> list[Chosen]:
    """Returns the tables that names mean, in their order; all if there are no names.

    Args:
      names: in full, or parts of names, as `CheckpointOptions` take them.
      found: by `candidates`.
      with_slots: whether slots are wanted too.

    Raises:
      ConfigError: E662 if a name means no table, or several.
    """
    picked: dict[str, Chosen] = {}
    problems: list[Problem] = []
    for name in names or found:
        several = meant(name, found)
        if len(several) == 1:
            one = found[several[0]]
            picked[one.name] = one if with_slots else one._replace(slots=[])
        else:
            problems += _unknown(name, several, found)
    if not found and not names:
        problems.append(Problem('E662', 'tables', 'the checkpoint must hold some', 'none',
                                'Look at it with etpe checkpoint show.'))
    if problems:
        raise ConfigError(*problems)
    return list(picked.values())


def _unknown(name: str, several: Sequence[str], known: Collection[str]) -> Iterator[Problem]:
    near = difflib.get_close_matches(name, known, n=3, cutoff=.4) or sorted(known)[:3]
    listed = [shown(one, 200) for one in several[:5] or near]
    yield Problem(
        'E662', f'--table {shown(name, 200)}', 'it must name one table, in full or by parts of '
        'its name that no other has', 'several' if several else 'none of that name',
        f'There: {quoted(listed)}.' if listed else 'The checkpoint has no tables.')


def _is_matrix(bundle: Bundle, key: str) -> bool:
    tensor = bundle.tensors[key]
    return (len(tensor.shape) == 2 and min(tensor.shape) > 0 and tensor.is_float
            and all(piece.first_row != NO_ROW for piece in tensor.pieces))


def _is_slot_key(key: str) -> bool:
    return _SLOT_OF_KERAS in key or _SLOT_OF_TABLE in key.removesuffix(_VALUE).rpartition('/')[2]


def _slots_of_object(bundle: Bundle, key: str) -> Iterator[tuple[str, str]]:
    """Yields (slot, key) of the tensors that are slots of a variable, by their keys and shapes.

    A midlevel optimizer makes `embedding/tab.Saccumulators`, and Keras makes
    `embedding/tab/.OPTIMIZER_SLOT/optimizer/accumulator`.
    """
    base = key.removesuffix(_VALUE)
    for other, tensor in bundle.tensors.items():
        if other.endswith(_VALUE) and _is_matrix(bundle, other) and (
                tensor.shape == bundle.tensors[key].shape):
            for mark in (_SLOT_OF_TABLE, _SLOT_OF_KERAS):
                slot = other.removesuffix(_VALUE).removeprefix(base + mark)
                if other.startswith(base + mark) and slot:
                    yield slot.rpartition('/')[2], other
