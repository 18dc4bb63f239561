"""Reads what a checkpoint of TF1 holds: one of this package, or one that TensorFlow wrote."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Container, Iterator, Mapping

from ..checkpoint.bundle import Bundle
from ..checkpoint.file_names import GRAPH, label
from ..checkpoint.manifest import Manifest, read_manifest
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.recover import Opened, check_manifest
from ..checkpoint.restore_plan import sign_of_mod, unknown_order
from ..checkpoint.tensors import Tensor
from ..core.partition import Partition
from ..errors import IncompatibleCheckpointError, Problem, UnreadableConfigError, shown
from ..proto import reading
from ..proto.codec import Config
from .checkpoint_contents import Contents, Variable, recognized, suffixes
from .map_file import Map

STEP = 'global_step'
_DUMMY = 'tpu_embedding_dummy_table_variable_'
"""TPUEstimator gives the optimizer of the other variables one of them for each table."""
_POWERS = re.compile(r'(.*/)?beta[12]_power(_\d+)?')
"""Variables of `tf.train.AdamOptimizer`; Keras computes their values from the step."""
_DEEPEST = 4
"""So many parts may follow in the names of its slots and of their moving averages, less one."""
_WEIGHTS = 'embedding_weights'
"""The last part of the name of a feature column's variable, which no other variable has."""
_OF_COLUMN = 'tbl_'
"""How the config calls the table of a feature column; the rest is part of the variable's name."""


def read(prefix: str, options: CheckpointOptions, map: Map) -> Contents:
    """Returns the contents of a checkpoint, as `moves.read`."""
    bundle, manifest = Bundle.open(prefix), read_manifest(prefix)
    check_manifest(Opened(bundle, manifest))
    config = _config(prefix, manifest)
    named = table_names(bundle, config)
    names = set(manifest.tables if manifest is not None else named)
    names |= _named_as_tables(bundle, map)
    orders = _orders(bundle, manifest, names, config, options)
    aside = {name for name in bundle.tensors
             if _POWERS.fullmatch(name) or name.startswith(_DUMMY)}
    variables = list(_variables(bundle, names, orders, aside))
    assumed = options.assumed_order()
    is_by_id = (sign_of_mod(prefix) is None and config is not None if assumed is None
                else _partition(assumed, 2).stores_by_id)
    if manifest is None and not is_by_id:
        variables = [dataclasses.replace(one, may_be_table=_may_be_table(bundle, one, assumed))
                     for one in variables]
    return Contents(
        bundle=bundle, variables=variables, step=STEP if STEP in bundle.tensors else None,
        own={}, aside=aside, names_in_config=named,
        config=config.SerializeToString(deterministic=True) if config else b'')


def _named_as_tables(bundle: Bundle, map: Map) -> set[str]:
    rules = {name: rule for name in bundle.tensors
             if (rule := map.rule_for(name)) is not None and rule.is_table}
    # An expression that fits a table and its slots means the table.
    return {name for name, rule in rules.items()
            if rule.pattern is None or not _is_below(name, rules)}


def _partition(order: tuple[str, int], rows: int) -> Partition:
    return Partition(strategy=order[0], vocabulary_size=rows, num_hosts=order[1])


def _may_be_table(bundle: Bundle, one: Variable, order: tuple[str, int] | None) -> bool:
    """Whether a variable is in slices as tables with `mod` rows are, though nothing calls it one.

    `order` is what the user says of the tables.
    """
    tensor = bundle.tensors[one.name]
    count = len(tensor.pieces)
    return (not one.is_table and one.order is None and tensor.is_table and count > 1
            and (order is None or count == min(order[1], tensor.rows)))


def _config(prefix: str, manifest: Manifest | None) -> Config | None:
    """Returns the config of the job, from the manifest or from the graph beside the checkpoint."""
    try:
        sources = (reading.read_bytes(manifest.config, label(prefix))
                   if manifest is not None and manifest.config
                   else reading.read_file(prefix + GRAPH, follow=False))
    except UnreadableConfigError:
        return None
    return sources[0].config


def table_names(bundle: Bundle, config: Config | None) -> dict[str, str]:
    """Returns the name of each table of a config, by the variable that holds it.

    A table of a feature column is called `tbl_x`, and `x` or `x_embedding` is a part of the name of
    its variable. A table of a config of dicts is called as its variable. A table that could be
    several is left out, and so are tables that could be the same. Where variables of feature
    columns have the name, others do not count, such as `tower/x/kernel`.
    """
    tables = list(config.table_descriptor) if config is not None else []
    parts = {table.name: [table.name, own := table.name.removeprefix(_OF_COLUMN),
                          f'{own}_embedding'] for table in tables}
    variables = _by_parts(bundle, {part.count('/') + 1 for each in parts.values()
                                   for part in each})
    found: dict[str, list[str]] = {}
    for table in tables:
        most = table.vocabulary_size  # At least one per host, though a table may have fewer rows.
        least = 1 if config is not None and most == config.num_hosts else most
        called = {name for part in parts[table.name] for name in variables.get(part, ())}
        of_columns = {name for name in called if name.rpartition('/')[2] == _WEIGHTS}
        fitting = {name for name in of_columns or called
                   if (shape := bundle.tensors[name].shape)[1:] == (table.dimension,)
                   and least <= shape[0] <= most}
        if table.name in fitting:
            fitting = {table.name}
        if len(fitting) == 1:
            found.setdefault(fitting.pop(), []).append(table.name)
    return {variable: names[0] for variable, names in found.items() if len(names) == 1}


def _by_parts(bundle: Bundle, lengths: Collection[int]) -> dict[str, list[str]]:
    """Returns the variables of floats by each row of so many whole parts of their names."""
    found: dict[str, list[str]] = {}
    for name, tensor in bundle.tensors.items():
        parts = name.split('/')
        for length in lengths if tensor.is_float and not _is_below(name, bundle.tensors) else ():
            for first in range(len(parts) - length + 1):
                found.setdefault('/'.join(parts[first:first + length]), []).append(name)
    return found


def _is_below(name: str, variables: Container[str]) -> bool:
    """Whether a tensor has the name of a slot of one of these."""
    return any(name.endswith(f'/{suffix}') and name.removesuffix(f'/{suffix}') in variables
               for suffix in suffixes('tf1', 'train'))


def _orders(bundle: Bundle, manifest: Manifest | None, names: set[str], config: Config | None,
            options: CheckpointOptions) -> Mapping[str, Partition]:
    """Returns how the rows of each table are ordered: E652 if nothing says it, or slices differ."""
    if manifest is not None:
        return {name: table.partition for name, table in manifest.tables.items()}
    assumed = options.assumed_order()
    if assumed is not None:
        found = {name: _partition(assumed, bundle.tensors[name].rows) for name in names}
        problems = list(_of_other_hosts(bundle, found))
        if problems:
            raise IncompatibleCheckpointError(*problems)
        return found
    sign = sign_of_mod(bundle.prefix)
    split = sorted(name for name in names if len(bundle.tensors[name].pieces) > 1)
    if names and (sign is not None or split and config is None):
        tables = ', '.join(f'"{shown(name, 100)}"' for name in (split or sorted(names))[:5])
        raise IncompatibleCheckpointError(unknown_order(
            'E652', label(bundle.prefix), tables, sign))
    return {}


def _of_other_hosts(bundle: Bundle, orders: Mapping[str, Partition]) -> Iterator[Problem]:
    """Yields a problem for each table whose slices are not those of the hosts that a user says.

    A checkpoint that was put together anew may have all tables in one piece each.
    """
    of_mod = {name: order for name, order in orders.items() if not order.stores_by_id}
    if all(len(bundle.tensors[name].pieces) == 1 for name in of_mod):
        return
    for name, order in sorted(of_mod.items()):
        hosts = min(order.num_hosts, order.vocabulary_size)
        wanted = [order.offset_of(host) for host in range(hosts)]
        got = sorted(piece.first_row for piece in bundle.tensors[name].pieces)
        if got != wanted:
            yield Problem(
                'E652', label(bundle.prefix), f'table "{shown(name, 200)}" must have the slices of '
                f'{order.num_hosts} hosts, as the assumed order says: from rows {wanted[:8]}',
                f'from {got[:8]}', 'Say the hosts of the job that wrote it. A variable that is in '
                'the order of ids is named without "table".')


def _variables(bundle: Bundle, tables: set[str], orders: Mapping[str, Partition],
               left: set[str]) -> Iterator[Variable]:
    slots: dict[str, dict[str, str]] = {}
    for name, tensor in bundle.tensors.items():
        for suffix in suffixes('tf1', 'train'):
            variable = name.removesuffix(f'/{suffix}')
            if variable != name and variable in bundle.tensors and name not in tables and (
                    bundle.tensors[variable].shape == tensor.shape):
                slots.setdefault(variable, {})[suffix] = name
    ways = {name: ('tf1', 'train') if name in tables else ('train',) for name in bundle.tensors}
    found = {name: recognized(present, *ways[name]) for name, present in slots.items()}
    taken = {tensor for each in found.values() if each is not None for tensor in each[1]}
    for name in bundle.tensors:
        if name in taken or name in left or name == STEP:
            continue
        family, tensors = found.get(name) or (None, ())
        yield Variable(name=name, tensor=name,
                       order=orders.get(table_of(name, bundle.tensors, orders)),
                       is_table=name in tables, family=family, slots=tensors)


def table_of(name: str, tensors: Mapping[str, Tensor], tables: Container[str]) -> str:
    """Returns the table in whose order the rows of a tensor of TF1 are, or its own name."""
    above = name
    for _ in range(_DEEPEST):
        if above in tables and tensors[above].shape == tensors[name].shape:
            return above
        above = above.rpartition('/')[0]
    return name
