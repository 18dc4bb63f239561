"""Reads a config into plain data, the `View` that most commands print.

People inspect broken configs above all. So nothing is checked here, and nothing is refused: a
number that makes no sense is shown as it is. `proto.codec.config_to_plan` judges configs.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.optimizers import OPTIMIZERS
from ..core.plan import BYTES_PER_ELEMENT
from ..migration.python_text import shortest
from ..proto import codec
from ..proto.reading import Source

PADDING = 8
"""The memory of the hardware holds rows whose width is a multiple of this many floats."""

Value = bool | int | float | str | tuple[Any, ...] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeatureView:
    """One feature."""

    position: int  # In the config, from 0; TF1 code gives features no other name.
    name: str  # May be empty.
    shape: tuple[int, ...]  # `[batch]` or `[batch, length]` on one core; in TF2 of any rank.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """One table. Its `settings` are hyper-parameters that differ from their defaults or have none,
    and rarer fields.
    """

    name: str
    rows: int
    dimension: int
    optimizer: str | None = None  # Its field in the proto; `None` where it is not stated.
    settings: Mapping[str, Value] = dataclasses.field(default_factory=dict)
    learning_rate: Value = None  # The constant; `None` where it is not stated or not constant.
    tag: int | None = None  # Of a learning rate that depends on the step; `None` for others.
    slots: tuple[str, ...] | None  # Names of the slots that are kept; `None` if unknown.
    features: tuple[FeatureView, ...] = ()

    @property
    def padded_dimension(self) -> int:
        """Columns as the memory of the hardware holds them."""
        return -(-max(self.dimension, 0) // PADDING) * PADDING

    @property
    def copies(self) -> int:
        """Number of matrices of the table's shape: the table and its known slots."""
        return 1 + len(self.slots or ())

    @property
    def bytes_per_row(self) -> int:
        """Bytes of a row and its slots, not padded."""
        return max(self.dimension, 0) * BYTES_PER_ELEMENT * self.copies

    @property
    def padded_bytes_per_row(self) -> int:
        """Bytes of a row and its slots, padded."""
        return self.padded_dimension * BYTES_PER_ELEMENT * self.copies

    @property
    def raw_bytes(self) -> int:
        """Bytes of all rows and slots, not padded."""
        return max(self.rows, 0) * self.bytes_per_row

    @property
    def padded_bytes(self) -> int:
        """Bytes of all rows and slots, padded."""
        return max(self.rows, 0) * self.padded_bytes_per_row


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A config. Its `settings` are further fields that are set."""

    where: str
    mode: str  # `'training'`, `'inference'`, or the name of a number that is neither.
    hosts: int
    cores: int  # Of all hosts.
    batch_size_per_core: int | None = None  # `None` where it is not stated or features disagree.
    strategy: str  # `'div'`, `'mod'`, or a number that is neither.
    settings: Mapping[str, Value] = dataclasses.field(default_factory=dict)
    tables: tuple[TableView, ...]  # Sorted by name.
    strays: tuple[FeatureView, ...] = ()  # Features whose table is not there.

    @property
    def slots_unknown(self) -> tuple[str, ...]:
        """Names of the tables with unknown slots. Their bytes do not count slots."""
        return tuple(table.name for table in self.tables if table.slots is None)

    @property
    def raw_bytes(self) -> int:
        """Bytes of all tables and slots, not padded."""
        return sum(table.raw_bytes for table in self.tables)

    @property
    def padded_bytes(self) -> int:
        """Bytes of all tables and slots, padded."""
        return sum(table.padded_bytes for table in self.tables)


def view_of(source: Source) -> View:
    """Returns the view of one config."""
    config = source.config
    features: dict[int, list[FeatureView]] = collections.defaultdict(list)
    for position, feature in enumerate(config.feature_descriptor):
        features[feature.table_id].append(FeatureView(
            position=position, name=feature.name, shape=tuple(feature.input_shape)))
    mode = _name_of('mode', config.mode, codec.MODES)
    tables = [_table_of(descriptor, tuple(features.pop(position, ())), mode)
              for position, descriptor in enumerate(config.table_descriptor)]
    sizes = {tuple(feature.input_shape[:1]) for feature in config.feature_descriptor}
    size = sizes.pop() if len(sizes) == 1 else ()
    return View(
        where=source.where, mode=mode, hosts=config.num_hosts,
        cores=config.num_tensor_cores, strategy=_name_of(
            'sharding_strategy', config.sharding_strategy, codec.STRATEGIES),
        batch_size_per_core=size[0] if size else config.batch_size_per_tensor_core or None,
        settings=dict(_rarer_fields(config)),
        tables=tuple(sorted(tables, key=lambda table: table.name)),
        strays=tuple(feature for position in sorted(features) for feature in features[position]))


def _name_of(field: str, number: int, names: Mapping[str, int]) -> str:
    return next((name for name, own in names.items() if own == number), f'{field} {number}')


def _rarer_fields(config: codec.Config) -> Iterator[tuple[str, Value]]:
    yield 'pipelined', config.pipeline_execution_with_tensor_core
    for name in ('profile_data_directory', 'batch_size_per_tensor_core'):
        if value := getattr(config, name):
            yield name, value
    if config.HasField('spmd_sharding'):
        yield 'spmd_sharding', _value(config.spmd_sharding)


def _table_of(descriptor: codec.Config.TableDescriptor, features: tuple[FeatureView, ...],
              mode: str) -> TableView:
    parameters = descriptor.optimization_parameters
    optimizer = parameters.WhichOneof('parameters')
    rate = parameters.learning_rate
    settings = dict(_settings(parameters, optimizer))
    slots = None if optimizer not in OPTIMIZERS else tuple(
        slot.suffix for slot in codec.decode_optimizer(parameters).slots)
    if descriptor.num_features:
        settings['num_features'] = descriptor.num_features
    return TableView(
        name=descriptor.name, rows=descriptor.vocabulary_size, dimension=descriptor.dimension,
        optimizer=optimizer, features=features, settings=settings,
        learning_rate=_value(rate.constant) if rate.HasField('constant') else None,
        tag=rate.dynamic.tag if rate.HasField('dynamic') else None,
        slots=() if mode == 'inference' else slots)


def _settings(parameters: codec.Parameters, optimizer: str | None
              ) -> Iterator[tuple[str, Value]]:
    """Hyper-parameters by the names of `core/optimizers.py`, then the rarer fields."""
    if optimizer in OPTIMIZERS:
        message = getattr(parameters, optimizer)
        usual = {field.name: field.default for field in dataclasses.fields(OPTIMIZERS[optimizer])}
        for field in message.DESCRIPTOR.fields:
            value = _value(getattr(message, field.name))
            if value != usual[field.name]:
                yield field.name, value
    elif optimizer is not None:
        for field, content in getattr(parameters, optimizer).ListFields():
            yield field.name, _value(content)
    if parameters.gradient_accumulation_status == codec.Accumulation.DISABLED:
        yield 'accumulate', False
    for name, limits in (('clip_gradients', parameters.gradient_clipping_limits),
                         ('clip_weights', parameters.clipping_limits)):
        if limits.HasField('lower') or limits.HasField('upper'):
            yield name, tuple(_value(getattr(limits, side).value) if limits.HasField(side)
                              else None for side in ('lower', 'upper'))
    if parameters.weight_decay_factor:
        yield 'decay', _value(parameters.weight_decay_factor)
    if parameters.multiply_weight_decay_factor_by_learning_rate:
        yield 'decay_times_rate', True
    for name in ('simulated_quantization', 'hot_id_replication_configuration'):
        if parameters.HasField(name):
            yield name.removesuffix('_configuration'), _value(getattr(parameters, name))
    if parameters.low_dimensional_packing_status:
        yield 'low_dimensional_packing_status', parameters.low_dimensional_packing_status


def _value(content: Any) -> Value:
    """A field in a form that Python and JSON can hold. Floats have the digits of a float32."""
    if isinstance(content, float):
        return shortest(content) if math.isfinite(content) else str(content)
    if isinstance(content, bytes):
        return f'{len(content)} bytes'
    if isinstance(content, (bool, int, str)):
        return content
    from google.protobuf import text_format
    return text_format.MessageToString(content, as_one_line=True)
