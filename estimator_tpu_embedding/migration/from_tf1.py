"""Reads what a checkpoint of TF1 holds: one of this package, or one that TensorFlow wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..checkpoint import evidence
from ..checkpoint.bundle import Bundle
from ..checkpoint.file_names import graph_of, label
from ..checkpoint.layout import Held, check_manifest, partition_of
from ..checkpoint.manifest import Manifest, read_manifest
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.tables_meant import may_mean
from ..core.partition import Partition
from ..errors import IncompatibleCheckpointError, UnreadableConfigError, shown
from ..proto import reading
from ..proto.codec import Config
from .contents import Contents, Variable
from .map_file import Map
from .names import POWERS, recognized, suffixes

STEP = 'global_step'
_DUMMY = 'tpu_embedding_dummy_table_variable_'
"""TPUEstimator gives the optimizer of the other variables one of them for each table."""
_OF_COLUMN = 'tbl_'
"""How the config calls the table of a feature column; the rest is part of the variable's name."""


def read(prefix: str, options: CheckpointOptions, map: Map) -> Contents:
    """Returns the contents of a checkpoint.

    Args:
      prefix: of the checkpoint.
      options: `assume` counts.
      map: its lines with `table` say which variables are tables, beside manifest and config.

    Raises:
      CorruptCheckpointError: if it or its manifest cannot be read.
      IncompatibleCheckpointError: E652 if nothing says how the rows of its tables are ordered.
    """
    bundle, manifest = Bundle.open(prefix), read_manifest(prefix)
    check_manifest(Held.of(bundle, manifest))
    config = _config(prefix, manifest)
    names = set(manifest.tables if manifest is not None else table_names(bundle, config))
    names |= {name for name in bundle.tensors
              if (rule := map.rule_for(name)) is not None and rule.is_table}
    orders = _orders(bundle, manifest, names, options)
    aside = {name for name in bundle.tensors
             if name.rpartition('/')[2] in POWERS or name.startswith(_DUMMY)}
    variables = list(_variables(bundle, names, orders, aside))
    return Contents(
        bundle=bundle, variables=variables, step=STEP if STEP in bundle.tensors else None,
        own={}, aside=aside, config=config.SerializeToString(deterministic=True) if config else b'')


def _config(prefix: str, manifest: Manifest | None) -> Config | None:
    """Returns the config of the job, from the manifest or from the graph beside the checkpoint."""
    try:
        sources = (reading.read_bytes(manifest.config, label(prefix))
                   if manifest is not None and manifest.config
                   else reading.read_file(graph_of(prefix), follow=False))
    except UnreadableConfigError:
        return None
    return sources[0].config


def parsed(config: bytes) -> Config | None:
    """Returns a serialized config; `None` if there is none."""
    return Config.FromString(config) if config else None


def table_names(bundle: Bundle, config: Config | None) -> dict[str, str]:
    """Returns the name of each table of a config, by the variable that holds it.

    A table of a feature column is called `tbl_x`, and `x` or `x_embedding` is a part of the name of
    its variable. A table of a config of dicts is called as its variable. A table that could be several is left out.
    """
    found: dict[str, str] = {}
    for table in config.table_descriptor if config is not None else ():
        shape = (table.vocabulary_size, table.dimension)
        part = table.name.removeprefix(_OF_COLUMN)
        fitting = [name for name, tensor in bundle.tensors.items()
                   if tensor.shape == shape and tensor.is_float
                   and (name == table.name or may_mean(part, name)
                        or may_mean(f'{part}_embedding', name))
                   and not _is_below(name, bundle)]
        if table.name in fitting:
            fitting = [table.name]
        if len(fitting) == 1:
            found[fitting[0]] = table.name
    return found


def _is_below(name: str, bundle: Bundle) -> bool:
    """Whether a tensor has the name of a slot of another one."""
    return any(name.endswith(f'/{suffix}') and name.removesuffix(f'/{suffix}') in bundle.tensors
               for suffix in suffixes('tf1', 'train'))


def _orders(bundle: Bundle, manifest: Manifest | None, names: set[str],
            options: CheckpointOptions) -> Mapping[str, Partition]:
    """Returns how the rows of each table are ordered.

    Raises:
      IncompatibleCheckpointError: E652 if nothing says it.
    """
    if manifest is not None:
        return {name: partition_of(table) for name, table in manifest.tables.items()}
    assumed = options.assumed_order()
    if assumed is not None:
        return {name: Partition(strategy=assumed[0], vocabulary_size=bundle.tensors[name].rows,
                                num_hosts=assumed[1]) for name in names}
    sign = evidence.of_mod(bundle.prefix)
    split = sorted(name for name in names if len(bundle.tensors[name].pieces) > 1)
    if names and (sign is not None or split and not _says_config(bundle.prefix)):
        tables = ', '.join(f'"{shown(name, 100)}"' for name in (split or sorted(names))[:5])
        raise IncompatibleCheckpointError(evidence.problem(
            'E652', label(bundle.prefix), tables, sign))
    return {}


def _says_config(prefix: str) -> bool:
    """Whether a graph with a config lies beside a checkpoint."""
    return _config(prefix, None) is not None


def _variables(bundle: Bundle, tables: set[str], orders: Mapping[str, Partition],
               left: set[str]) -> Iterator[Variable]:
    """Yields all variables with their slots."""
    slots: dict[str, dict[str, str]] = {}
    for name, tensor in bundle.tensors.items():
        for suffix in suffixes('tf1', 'train'):
            owner = name.removesuffix(f'/{suffix}')
            if owner != name and owner in bundle.tensors and (
                    bundle.tensors[owner].shape == tensor.shape):
                slots.setdefault(owner, {})[suffix] = name
    ways = {name: ('tf1', 'train') if name in tables else ('train',) for name in bundle.tensors}
    found = {name: recognized(present, *ways[name]) for name, present in slots.items()}
    taken = {tensor for each in found.values() if each is not None for tensor in each[1]}
    for name in bundle.tensors:
        if name in taken - tables or name in left or name == STEP:
            continue
        family, tensors = found.get(name) or (None, ())
        yield Variable(name=name, tensor=name, order=orders.get(name), is_table=name in tables,
                       family=family, slots=tensors)
