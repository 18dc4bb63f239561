"""Pairs the tensors of two checkpoints that mean the same, of one API or of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..core.partition import Partition
from ..errors import ConfigError
from . import from_tf1
from .contents import Contents, Family, Variable
from .map_file import Map, Rule
from .naming import Named, names, problems_of_map
from .target import TF1, TF2, Target


class Pairs(NamedTuple):
    """What to compare.

    Attributes:
      tensors: pairs of a tensor of each checkpoint; `''` if one of them has none.
      ignored: the tensors that mean something in one of the APIs only.
      dropped: the tensors that the map drops.
    """

    tensors: list[tuple[str, str]]
    ignored: list[str]
    dropped: list[str]


def pairs(a: Contents, b: Contents, map: Map) -> Pairs:
    """Pairs the tensors of two checkpoints by the names that a migration gives.

    Args:
      a: one checkpoint.
      b: the other.
      map: new names for the variables of `a`.

    Raises:
      ConfigError: E654 if the map is about another checkpoint.
    """
    problems = list(problems_of_map(a, Target(kind=TF2 if b.is_tf2 else TF1), map))
    if problems:
        raise ConfigError(*problems)
    given = names(a, map, stays_in_api=a.is_tf2 == b.is_tf2)
    texts = {b.text_of(tensor): tensor for tensor in b.bundle.tensors}
    by_name = _by_name(b)
    found: list[tuple[str, str]] = []
    dropped = [tensor for tensor, new in given.others.items() if isinstance(new, Rule)]
    for named in given.variables:
        dropped += [slot for slot, new in named.alone.items() if isinstance(new, Rule)]
        if named.new is None and not named.is_nameless:
            dropped += [tensor for tensor in named.tensors if tensor not in named.alone]
            continue
        found += _of_variable(named, by_name.get(named.new or ''), texts)
    found += [(tensor, texts.get(new, '')) for tensor, new in given.others.items()
              if isinstance(new, str)]
    if a.step is not None and a.step not in given.others:
        found.append((a.step, b.step or ''))
    found += [(tensor, texts.get(tensor, '')) for tensor in a.aside if tensor not in given.others]
    known = {tensor for _, tensor in found}
    found += [('', tensor) for tensor in b.bundle.tensors
              if tensor not in known and tensor not in b.own]
    ignored = [*(tensor for tensor in a.own if tensor not in given.others),
               *(tensor for tensor in b.own if tensor not in known)]
    return Pairs(found, ignored, dropped)


def orders(contents: Contents) -> Mapping[str, Partition]:
    """Returns how the rows of tables, slots and moving averages are ordered, by tensor."""
    return {tensor: one.order or Partition.by_id(contents.tensor(one.tensor).rows)
            for one in contents.variables if one.is_table or one.order is not None
            for tensor in (one.tensor, *one.slots)}


def _by_name(contents: Contents) -> dict[str, Variable]:
    """Returns the variables by their names, and tables of TF1 by those of the config too."""
    found = {one.name: one for one in contents.variables}
    if not contents.is_tf2:
        by_config = from_tf1.table_names(contents.bundle, from_tf1.parsed(contents.config))
        for one in contents.tables:
            found.setdefault(by_config.get(one.name, one.name), one)
    return found


def _of_variable(named: Named, other: Variable | None, texts: Mapping[str, str]
                 ) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a variable and its slots."""
    one = named.variable
    yield one.tensor, other.tensor if other is not None else ''
    theirs = other.slots if other is not None and _are_alike(one.family, other.family) else ()
    for number, slot in enumerate(one.slots):
        new = named.alone.get(slot)
        if isinstance(new, str):
            yield slot, texts.get(new, '')
        elif new is None:
            yield slot, theirs[number] if theirs else ''


def _are_alike(one: Family | None, other: Family | None) -> bool:
    """Whether slots mean the same: Keras has one Adam, TF1 has two."""
    return one is not None and other is not None and (
        one is other or bool(one.keras) and one.keras == other.keras)
