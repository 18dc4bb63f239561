"""Finds the new name of each variable: by the map, or one that follows from the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..checkpoint.object_graph import Place
from . import from_tf1
from .contents import Contents, Variable
from .map_file import Map, Rule

NOTHING = 'nothing names it'
"""Why a variable stays behind that no line of the map is about."""


class Named(NamedTuple):
    """The names of a variable and of its slots.

    Attributes:
      variable: the variable.
      new: its name, or the name of the table; `None` if it stays behind.
      why: the reason then, `NOTHING` if it has no name.
      alone: the slots that have lines of their own: the new name, or the line that drops it.
    """

    variable: Variable
    new: str | None
    why: str
    alone: Mapping[str, str | Rule]

    @property
    def tensors(self) -> tuple[str, ...]:
        """The variable and its slots."""
        return self.variable.tensor, *self.variable.slots

    @property
    def is_nameless(self) -> bool:
        """Whether the user has to say what becomes of it."""
        return self.why == NOTHING


class Names(NamedTuple):
    """The new names of everything.

    Attributes:
      variables: tables and others.
      others: tensors that are no variables with slots, which the map names: their new names, or
        the lines that drop them.
    """

    variables: Sequence[Named]
    others: Mapping[str, str | Rule]


def names(contents: Contents, map: Map, stays_in_api: bool) -> Names:
    """Finds the new names.

    Args:
      contents: of the checkpoint.
      map: its lines come before other names.
      stays_in_api: whether the other checkpoint is of the same API: then names stay as they are.
    """
    defaults = dict(_defaults(contents, stays_in_api))
    others = {}
    for tensor in (*contents.own, *contents.aside, *filter(None, [contents.step])):
        rule = map.rule_for(text_of(contents, tensor))
        if rule is not None:
            others[tensor] = _new(rule, text_of(contents, tensor))
    return Names([_named(contents, map, one, defaults.get(one.tensor))
                  for one in contents.variables], others)


def text_of(contents: Contents, tensor: str) -> str:
    """Returns how maps call a tensor that is no table: in TF2 by its path."""
    place = Place.of_key(tensor) if contents.is_tf2 else None
    return tensor if place is None else str(place)


def known(contents: Contents) -> Iterator[str]:
    """Yields all names that a line of a map can be about."""
    for one in contents.variables:
        yield one.name
        yield from (text_of(contents, slot) for slot in one.slots)
    for tensor in (*contents.own, *contents.aside, *filter(None, [contents.step])):
        yield text_of(contents, tensor)


def _named(contents: Contents, map: Map, one: Variable, default: str | None) -> Named:
    rule = map.rule_for(one.name)
    new = default if rule is None else _new(rule, one.name)
    alone = {}
    for slot in one.slots:
        text = text_of(contents, slot)
        own = map.rule_for_slot(text, one.name)
        if own is not None:
            alone[slot] = _new(own, text)
    if isinstance(new, str):
        return Named(one, new, '', alone)
    return Named(one, None, NOTHING if new is None else why(new), alone)


def _new(rule: Rule, name: str) -> str | Rule:
    """Returns the new name by a line, or the line if it drops the name."""
    new = rule.renamed(name)
    return rule if new is None else new


def why(rule: Rule) -> str:
    """Returns the reason that a line drops something."""
    return f'dropped by {rule.where}'


def _defaults(contents: Contents, stays_in_api: bool) -> Iterator[tuple[str, str]]:
    """Yields tensors of variables with the names they have if no line is about them."""
    if stays_in_api:
        yield from ((one.tensor, one.name) for one in contents.variables)
    elif contents.is_tf2:
        yield from ((one.tensor, one.name) for one in contents.tables)
    else:
        by_config = from_tf1.table_names(contents.bundle, from_tf1.parsed(contents.config))
        yield from ((one.tensor, by_config[one.name]) for one in contents.tables
                    if one.name in by_config)
