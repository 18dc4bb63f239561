"""Pairs the tensors of a checkpoint of TF1 and one of TF2, to be compared."""

from __future__ import annotations

import argparse

from ...checkpoint.options import CheckpointOptions
from ...migration import contents
from ...migration.map_file import Map
from ...migration.naming import orders, pairs
from ...migration.plan import read
from ..migrating import choices
from .opened import Stored
from .texts import count_text

_ARGUMENTS = ('map', 'object_path', 'optimizer_path')


def is_across(a: Stored, b: Stored, parsed: argparse.Namespace) -> bool:
    """Whether two checkpoints are of different APIs; arguments that do not fit end the command."""
    found = contents.is_tf2(a.bundle) != contents.is_tf2(b.bundle)
    if found and parsed.rename:
        parsed.refuse('argument --rename: one of both is of TF2; --map names tables and variables')
    for name in _ARGUMENTS:
        if not found and getattr(parsed, name) is not None:
            parsed.refuse(f'argument --{name.replace("_", "-")}: both checkpoints are of one API')
    return found


def paired(a: Stored, b: Stored, parsed: argparse.Namespace, given: CheckpointOptions
           ) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs tensors, and lets both know how the rows of their tables are ordered.

    Returns:
      Pairs of tensors, sorted, `''` if one has none; and notes for the user.

    Raises:
      ConfigError: E651 if the map cannot be read, E653 if there are no tables at the path, E654 if
        the map is about another checkpoint.
      IncompatibleCheckpointError: E652 if nothing says how rows are ordered.
    """
    map = choices.read_map(parsed)
    of_a, of_b = (read(one.prefix, choices.paths(parsed), names, given)
                  for one, names in ((a, map), (b, Map())))
    found = pairs(of_a, of_b, map)
    for one, its in ((a, of_a), (b, of_b)):
        one.partitions = dict(orders(its))
    notes = []
    if found.ignored:
        notes.append(f'not compared: {count_text(len(found.ignored), "tensor")} that only one API '
                     'has, such as counters and rates of TF2')
    if found.dropped:
        notes.append(f'not compared: {count_text(len(found.dropped), "tensor")} that the map drops')
    return sorted(found.tensors, key=lambda pair: pair[0] or pair[1]), notes
