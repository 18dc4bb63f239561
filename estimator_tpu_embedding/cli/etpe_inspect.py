"""Shows tables, features, topology and strategy, also of a config that is invalid. Bytes are those
of a table and its slots; padded to a width that is a multiple of 8 floats, as the memory of the
hardware holds them. A feature is shown with its shape on one core, and by its position if it has no
name.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from ..checkpoint.options import CheckpointOptions
from ..core.specs import Topology
from ..errors import CorruptCheckpointError, UnreadableConfigError, bytes_text
from ..proto.reading import Source
from . import input_argument as inputs
from .config_view import FeatureView, TableView, Value, View, view_of
from .report import Grid, Line, Report, as_command, as_data, as_lines

_MOST_FEATURES = 4
_HEAD = ('table', '>rows', '>dim', '>pad', 'optimizer', 'rate', '>slots', 'features', '>bytes',
         '>padded')


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    as_command(parser, _report, 'INPUT')


def _report(parsed: argparse.Namespace) -> Report:
    if inputs.may_be_checkpoint(parsed.input):
        from .checkpoint_argument import report_of
        return report_of([parsed.input], lambda: _of_checkpoint(parsed.input))
    return _of_configs(inputs.load(parsed.input))


def _of_configs(sources: Sequence[Source]) -> Report:
    views = list(map(view_of, sources))
    return Report([block for view in views for block in _blocks(view)],
                  {'configs': [_view_data(view) for view in views]})


def _of_checkpoint(path: str) -> Report:
    """Returns the report of `checkpoint show`, and the configs of the checkpoint."""
    from . import etpe_checkpoint_show as show
    try:
        sources = inputs.load(path)
    except UnreadableConfigError as error:
        if error.code != inputs.NO_CONFIG:
            raise
        sources = []
    try:
        shown = show.report(path, CheckpointOptions(verify='size'), [])
    except (CorruptCheckpointError, UnreadableConfigError) as error:
        if not sources:
            raise
        # A job that has not saved yet has a graph all the same.
        found = error.problems if isinstance(error, CorruptCheckpointError) else ()
        shown = Report(as_lines(found), {'findings': as_data(found)}, len(found[:1]))
    configs = _of_configs(sources)
    return Report([*shown.blocks, *configs.blocks], {
        'checkpoint': shown.data, 'findings': shown.data['findings'], **configs.data}, shown.status)


def _headline(view: View) -> str:
    if view.cores and view.hosts > 0 and view.cores % view.hosts == 0:
        topology = Topology(num_hosts=view.hosts, cores_per_host=view.cores // view.hosts)
        size = view.batch_size_per_core
        arithmetic = f'{topology}, batch of unknown size' if size is None else (
            topology.batch_arithmetic(size * topology.num_cores))
    else:
        arithmetic = f'{view.hosts} hosts, {view.cores} cores in all'
    parts = [view.mode, arithmetic, view.strategy, *_settings_text(view.settings)]
    return f'{view.where}: {", ".join(parts)}'


def _settings_text(settings: Any) -> list[str]:
    """A bare name is a switch that is on."""
    return [name if value is True else f'{name}={value_text(value)}'
            for name, value in settings.items() if value is not False or name == 'accumulate']


def value_text(value: Value) -> str:
    """Returns a value as text. An open side of a pair of limits becomes dots.

    >>> value_text(0.05), value_text((-1.0, None))
    ('0.05', '[-1, ..]')
    """
    if isinstance(value, tuple):
        return f'[{", ".join(".." if side is None else value_text(side) for side in value)}]'
    return f'{value:.9g}' if isinstance(value, float) else str(value)


def _features_text(features: Sequence[FeatureView]) -> str:
    shown = [f'{feature.name or f"#{feature.position}"} '
             f'[{", ".join(map(str, feature.shape))}]' for feature in features[:_MOST_FEATURES]]
    if len(features) > _MOST_FEATURES:
        shown.append(f'{len(features) - _MOST_FEATURES} more')
    return ', '.join(shown)


def _blocks(view: View) -> Iterator[Line | Grid]:
    yield Line(_headline(view), 'head')
    yield Grid(_HEAD, [_cells(table) for table in view.tables])
    if view.strays:
        yield Line(f'features without a table: {_features_text(view.strays)}', 'bad')
    unknown = ('; ? stands for slots that are not known, and their bytes are not counted'
               if view.slots_unknown else '')
    yield Line(f'{len(view.tables)} tables, {bytes_text(view.raw_bytes)}, padded '
               f'{bytes_text(view.padded_bytes)}{unknown}')


def _cells(table: TableView) -> tuple[str, ...]:
    optimizer = ' '.join([table.optimizer or '', *_settings_text(table.settings)]).strip()
    rate = '' if table.learning_rate is None else value_text(table.learning_rate)
    return (table.name, f'{table.rows:,}', str(table.dimension), str(table.padded_dimension),
            optimizer, rate if table.tag is None else f'tag {table.tag}',
            '?' if table.slots is None else str(len(table.slots)),
            _features_text(table.features), bytes_text(table.raw_bytes),
            bytes_text(table.padded_bytes))


def _view_data(view: View) -> dict[str, Any]:
    data = {'kind': 'config', **dataclasses.asdict(view)}
    data['bytes'], data['padded_bytes'] = view.raw_bytes, view.padded_bytes
    for table, own in zip(view.tables, data['tables']):
        own.update(padded_dimension=table.padded_dimension, bytes=table.raw_bytes,
                   padded_bytes=table.padded_bytes)
    return data
