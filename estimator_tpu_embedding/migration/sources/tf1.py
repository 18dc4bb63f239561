"""Writes a declaration for jobs with `TPUEstimator`, as an `EmbeddingConfigSpec` by two dicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Sequence

from ...core.optimizer_base import Optimizer
from . import initializers, optimizer_calls
from .facts import JOB, LOST, NOT_WRITABLE, Declaration, Feature, Note, Table, place
from .module import (
    NONE_OF_ALL,
    Constants,
    assigned,
    batch_lines,
    by_place,
    commonest,
    constant_of,
    head,
)
from .rates import Rates
from .text import Argument, Call, Expression, call, number, quoted

_TITLE = 'Tables and features of a job, for TPUEstimator.'
_IMPORTS = ['import tensorflow.compat.v1 as tf', 'from tensorflow.python.tpu import tpu_embedding']
_ALL = 'OPTIMIZATION_PARAMETERS'
_NOT_KNOWN = 'not in the config'
_MULTIPLIER = '''\
def gradient_multiplier(global_step):
    """Returns the factor of all gradients of tables at a step."""
    raise NotImplementedError('write gradient_multiplier')
'''


def written(declaration: Declaration) -> tuple[str, list[Note]]:
    """Returns a Python file, and all notes of it.

    It has the names `TRAIN_BATCH_SIZE`, `OPTIMIZATION_PARAMETERS`, `TABLES`, `FEATURES` and
    `EMBEDDING_CONFIG_SPEC`.

    Args:
      declaration: what the job declares.
    """
    used = {feature.spec.table for feature in declaration.features}
    rates = Rates.of([table for table in declaration.tables if table.name in used
                      and optimizer_calls.is_writable(table, 'tf1')])
    notes = [*declaration.notes, *_notes(declaration, used), *rates.notes()]
    texts = by_place(notes)
    optimizers = _Optimizers(declaration.tables)
    found = head(_TITLE, _IMPORTS, declaration, notes)
    found += ['', 'api = tf.tpu.experimental', '']
    found += [*batch_lines(declaration, 'TRAIN_BATCH_SIZE')]
    found += rates.functions('tf1')
    if declaration.multiplier:
        found += ['', '', *_MULTIPLIER.splitlines()]
    found += ['', ''] if rates.names or declaration.multiplier else ['']
    found += [*optimizers.lines(), '']
    found += assigned('TABLES', Call('{', [
        Argument(f'{quoted(table.name)}: ', _table(table, optimizers, rates),
                 texts.get(place('table', table.name), ()))
        for table in declaration.tables if table.name in used]))
    found += ['', *assigned('FEATURES', Call('{', [
        Argument(f'{quoted(feature.spec.name)}: ', _feature(feature),
                 texts.get(place('feature', feature.spec.name), ()))
        for feature in declaration.features]))]
    found += ['', *assigned('EMBEDDING_CONFIG_SPEC', _spec(declaration))]
    return '\n'.join(found) + '\n', notes


class _Optimizers:
    """The parameters of all tables: those of the spec, and others by table.

    Tables that differ in nothing but the learning rate share parameters: a table may have a rate
    of its own.
    """

    def __init__(self, tables: Sequence[Table]):
        self._trained = [table for table in tables if table.spec.optimizer is not None
                         and optimizer_calls.is_writable(table, 'tf1')]
        self._names = {table.name for table in self._trained}
        # A table without its own parameters would silently take those of the spec.
        self._common = (commonest(map(self._key, self._trained))
                        if len(self._trained) == len(tables) else None)
        self._rate = commonest(
            table.spec.optimizer.learning_rate for table in self._trained
            if table.spec.optimizer is not None and table.dynamic is None
            and self._key(table) == self._common) or 0.0
        own = [table for table in self._trained if self._key(table) != self._common]
        self._made = {self._own_key(table): _parameters(table) for table in own}
        self._constants = Constants.of([
            (self._own_key(table), constant_of(self._made[self._own_key(table)]))
            for table in own])

    def lines(self) -> list[str]:
        """Returns the lines that define the parameters which tables share."""
        found = []
        for key, name in self._constants.names.items():
            found += assigned(name, self._made[key])
        if self._made and self._common is None:
            found += [NONE_OF_ALL]
        common = next((table for table in self._trained if self._key(table) == self._common), None)
        return [*found, *assigned(_ALL, 'None' if common is None else _parameters(
            common, self._rate))]

    def arguments(self, table: Table, rates: Rates) -> dict[str, Expression]:
        """Returns the arguments of a TableConfig about its training."""
        optimizer = table.spec.optimizer
        if optimizer is None or table.name not in self._names:
            return {}
        found: dict[str, Expression] = {}
        is_common = self._key(table) == self._common
        name = rates.name(table)
        if name is not None:
            found['learning_rate_fn'] = name
        elif is_common and optimizer.learning_rate != self._rate or _is_rate_elsewhere(optimizer):
            found['learning_rate'] = number(optimizer.learning_rate)
        if not is_common:
            key = self._own_key(table)
            found['optimization_parameters'] = self._constants.names.get(key, self._made[key])
        return found

    @staticmethod
    def _key(table: Table) -> Hashable:
        assert table.spec.optimizer is not None
        return dataclasses.replace(table.spec.optimizer, learning_rate=0.0), table.is_whole

    @staticmethod
    def _own_key(table: Table) -> Hashable:
        return table.spec.optimizer, table.is_whole


def _is_rate_elsewhere(optimizer: Optimizer) -> bool:
    """Whether the table must say a rate, because the parameters have no argument for it."""
    return optimizer.field == 'frequency_estimator' and optimizer.learning_rate != 1.0


def _parameters(table: Table, rate: float | None = None) -> Call:
    optimizer = table.spec.optimizer
    assert optimizer is not None
    return optimizer_calls.written(
        optimizer, number(optimizer.learning_rate if rate is None else rate), 'tf1',
        is_whole=table.is_whole, packed=False)


def _table(table: Table, optimizers: _Optimizers, rates: Rates) -> Call:
    spec = table.spec
    found = [Argument('vocabulary_size=', number(spec.vocabulary_size)),
             Argument('dimension=', number(spec.dimension))]
    initializer = initializers.written(table, 'tf1')
    if initializer is not None:
        found.append(Argument('initializer=', initializer))
    found.append(Argument('combiner=', 'None' if spec.combiner is None else quoted(spec.combiner),
                          remark='' if table.is_whole else _NOT_KNOWN))
    if spec.hot_id_replication:
        found.append(Argument('hot_id_replication=', 'True'))
    found += [Argument(f'{name}=', value)
              for name, value in optimizers.arguments(table, rates).items()]
    return Call('tpu_embedding.TableConfig(', found)


def _feature(feature: Feature) -> Call:
    spec = feature.spec
    arguments: dict[str, Expression] = {'table_id': quoted(spec.table)}
    if spec.max_sequence_length:
        arguments['max_sequence_length'] = number(spec.max_sequence_length)
    if spec.weight_feature not in (None, spec.name):
        arguments['weight_key'] = quoted(str(spec.weight_feature))
    return call('tpu_embedding.FeatureConfig', arguments)


def _spec(declaration: Declaration) -> Call:
    arguments: dict[str, Expression] = {
        'feature_to_config_dict': 'FEATURES', 'table_to_config_dict': 'TABLES',
        'optimization_parameters': _ALL, 'partition_strategy': quoted(declaration.strategy)}
    if declaration.pipelined:
        arguments['pipeline_execution_with_tensor_core'] = 'True'
    if declaration.profile_directory:
        arguments['profile_data_directory'] = quoted(declaration.profile_directory)
    if declaration.multiplier:
        arguments['experimental_gradient_multiplier_fn'] = 'gradient_multiplier'
    return call('tf.estimator.tpu.experimental.EmbeddingConfigSpec', arguments)


def _notes(declaration: Declaration, used: set[str]) -> Iterator[Note]:
    if declaration.multiplier:
        yield Note(where=JOB, code=NOT_WRITABLE, fact='The gradients are multiplied by a function '
                   f'of the program ({declaration.multiplier})', remedy='Write '
                   'gradient_multiplier.')
    if declaration.origin == 'TF2':
        yield Note(where=JOB, fact='TPUEstimator takes 0 in dense ids of a table with a combiner '
                   'for a missing id, and TF2 takes it for an id', remedy='Pass sparse ids.')
        yield Note(where=JOB, fact='TF2 takes weights with the ids, and TPUEstimator from a '
                   'feature', remedy='If a feature has weights, name theirs as its weight_key.')
    for table in declaration.tables:
        where = place('table', table.name)
        if table.name not in used:
            yield Note(where=JOB, code=LOST, fact=f'{where} has no feature, and TPUEstimator '
                       'refuses such a table', remedy='It is left out.')
            continue
        yield from optimizer_calls.notes_of(table, where, 'tf1')
        yield from initializers.notes_of(table, where)
        if table.spec.quantization is not None:
            yield Note(where=where, code=LOST, fact='TPUEstimator does not round rows that are '
                       f'looked up ({table.spec.quantization})')
        if not table.algorithm:
            yield Note(where=where, code=LOST, fact='the table is not trained, and TPUEstimator '
                       'trains every table', remedy='Give it a learning rate of 0.0.')
    for feature in declaration.features:
        where = place('feature', feature.spec.name)
        if feature.spec.output_shape is not None:
            yield Note(where=where, code=LOST, fact='TPUEstimator has no output shape '
                       f'({list(feature.spec.output_shape)})')
        if not feature.validate:
            yield Note(where=where, code=LOST, fact='TPUEstimator has no '
                       'validate_weights_and_indices for features of a dict')
