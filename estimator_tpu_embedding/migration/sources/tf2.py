"""Writes a declaration for TF2: for loops with `TPUEmbedding`, or for the layer of TFRS."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from ...proto.codec import STRATEGIES, Config
from . import initializers, optimizer_calls
from .facts import JOB, LOST, Declaration, Feature, Note, Table, place
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
from .text import Argument, Call, Expression, call, lines, number, quoted

_TITLES = {'tf2': 'Tables and features of a job, for TPUEmbedding of TensorFlow 2.',
           'tfrs': 'Tables and features of a job, for the layer of TensorFlow Recommenders.'}
_IMPORTS = {'tf2': ['import tensorflow as tf'],
            'tfrs': ['import tensorflow as tf', 'import tensorflow_recommenders as tfrs']}
_ALL = 'OPTIMIZER'
_NOT_KNOWN = 'not in the config'


def written(declaration: Declaration, target: str) -> tuple[str, list[Note]]:
    """Returns a Python file, and all notes of it.

    It has the names `BATCH_SIZE`, `BATCH_SIZE_PER_REPLICA`, `OPTIMIZER`, `TABLES`, `FEATURES`,
    and `make_embedding` or `make_layer`.

    Args:
      declaration: what the job declares.
      target: `'tf2'` or `'tfrs'`.
    """
    rates = Rates.of([table for table in declaration.tables
                      if optimizer_calls.is_writable(table, target)])
    notes = [*declaration.notes, *_notes(declaration, target), *rates.notes()]
    texts = by_place(notes)
    optimizers = _Optimizers(declaration.tables, rates, target)
    found = head(_TITLES[target], _IMPORTS[target], declaration, notes)
    found += ['', 'api = tf.tpu.experimental.embedding', '']
    found += batch_lines(declaration, 'BATCH_SIZE', 'BATCH_SIZE_PER_REPLICA')
    found += rates.functions(target)
    found += ['', ''] if rates.names else ['']
    found += [*optimizers.lines(), '']
    found += assigned('TABLES', Call('{', [
        Argument(f'{quoted(table.name)}: ', _table(table, optimizers, target),
                 texts.get(place('table', table.name), ())) for table in declaration.tables]))
    found += ['', *assigned('FEATURES', Call('{', [
        Argument(f'{quoted(feature.spec.name)}: ', _feature(feature),
                 texts.get(place('feature', feature.spec.name), ()))
        for feature in declaration.features]))]
    found += ['', '', *_maker(declaration, target)]
    return '\n'.join(found) + '\n', notes


class _Optimizers:
    """The optimizers of all tables: one for most of them, others by table."""

    def __init__(self, tables: Sequence[Table], rates: Rates, target: str):
        trained = [table for table in tables if table.spec.optimizer is not None
                   and optimizer_calls.is_writable(table, target)]
        self._made: dict[Hashable, Call] = {}
        for table in trained:
            if (key := self._key(table)) not in self._made:
                self._made[key] = self._call(table, rates, target)
        # A table without its own optimizer would silently take that of the others.
        # Of several that are as common, a constant rate comes first.
        constant_first = sorted(trained, key=lambda table: table.dynamic is not None)
        self._common = (commonest(map(self._key, constant_first))
                        if len(trained) == len(tables) else None)
        self._constants = Constants.of([
            (key, constant_of(self._made[key])) for table in trained
            if (key := self._key(table)) != self._common])
        self._is_complete = len(trained) == len(tables)

    def lines(self) -> list[str]:
        """Returns the lines that define the optimizers which tables share."""
        found = []
        for key, name in self._constants.names.items():
            found += assigned(name, self._made[key])
        common = 'None' if self._common is None else self._made[self._common]
        if self._made and not self._is_complete:
            found += [NONE_OF_ALL]
        return [*found, *assigned(_ALL, common)]

    def of(self, table: Table) -> Expression | None:
        """Returns the optimizer of a table; `None` if it is that of all, or there is none."""
        key = self._key(table)
        if key == self._common or key not in self._made:
            return None
        return self._constants.names.get(key, self._made[key])

    @staticmethod
    def _key(table: Table) -> Hashable:
        return table.spec.optimizer, table.dynamic, table.packed, table.is_whole

    @staticmethod
    def _call(table: Table, rates: Rates, target: str) -> Call:
        optimizer = table.spec.optimizer
        assert optimizer is not None
        return optimizer_calls.written(
            optimizer, rates.name(table) or number(optimizer.learning_rate), target,
            is_whole=table.is_whole, packed=table.packed)


def _table(table: Table, optimizers: _Optimizers, target: str) -> Call:
    spec = table.spec
    arguments = {'vocabulary_size': number(spec.vocabulary_size), 'dim': number(spec.dimension)}
    found = [Argument(f'{name}=', value) for name, value in arguments.items()]
    initializer = initializers.written(table, target)
    if initializer is not None:
        found.append(Argument('initializer=', initializer))
    optimizer = optimizers.of(table)
    if optimizer is not None:
        found.append(Argument('optimizer=', optimizer))
    # Without a combiner each sample has one id, and all combiners give its row.
    found.append(Argument('combiner=', quoted(spec.combiner or 'sum'),
                          remark='' if table.is_whole else _NOT_KNOWN))
    found.append(Argument('name=', quoted(table.name)))
    if spec.quantization is not None:
        found.append(Argument('quantization_config=', call('api.QuantizationConfig', {
            'num_buckets': number(spec.quantization.num_buckets),
            'lower': number(spec.quantization.lower), 'upper': number(spec.quantization.upper)})))
    return Call('api.TableConfig(', found)


def _feature(feature: Feature) -> Call:
    spec = feature.spec
    arguments: dict[str, Expression] = {'table': f'TABLES[{quoted(spec.table)}]'}
    if spec.max_sequence_length:
        arguments['max_sequence_length'] = number(spec.max_sequence_length)
    if not feature.validate:
        arguments['validate_weights_and_indices'] = 'False'
    if spec.output_shape is not None:
        arguments['output_shape'] = repr(list(map(int, spec.output_shape)))
    if feature.declared_name:
        arguments['name'] = quoted(feature.declared_name)
    return call('api.FeatureConfig', arguments)


def _maker(declaration: Declaration, target: str) -> list[str]:
    """Returns the lines of the function that makes the object or the layer."""
    pipelined = {'pipeline_execution_with_tensor_core': 'True'} if declaration.pipelined else {}
    if target == 'tf2':
        made = call('api.TPUEmbedding', {
            'feature_config': 'FEATURES', 'optimizer': _ALL, **pipelined})
        name, what = 'make_embedding', 'the look-ups'
    else:
        made = call('tfrs.layers.embedding.TPUEmbedding', {
            'feature_config': 'FEATURES', 'optimizer': _ALL, **pipelined})
        made = Call(made.opening, [*made.arguments, Argument(
            'batch_size=', 'BATCH_SIZE_PER_REPLICA', remark='It is not the global one.')])
        name, what = 'make_layer', 'the layer'
    return [f'def {name}():', f'    """Returns {what}. Call it in the scope of the strategy."""',
            *lines('return ', made, indent='    ')]


def _notes(declaration: Declaration, target: str) -> Iterator[Note]:
    yield from _notes_of_job(declaration)
    used = {feature.spec.table for feature in declaration.features}
    for table in declaration.tables:
        where = place('table', table.name)
        yield from optimizer_calls.notes_of(table, where, target)
        yield from initializers.notes_of(table, where)
        if table.spec.hot_id_replication:
            yield Note(where=where, code=LOST, fact='TF2 does not replicate hot ids '
                       '(hot_id_replication)', remedy='It changes no number.')
        if table.name not in used:
            yield Note(where=where, code=LOST, fact='no feature looks up in this table, and TF2 '
                       'knows only tables of features')
        if table.is_whole and table.spec.combiner is None:
            yield Note(where=where, fact='the job had no combiner here, as each sample has one id',
                       remedy="'sum' gives the same; pass dense ids.")
    for feature in declaration.features:
        if feature.spec.weight_feature not in (None, feature.spec.name):
            yield Note(
                where=place('feature', feature.spec.name), fact='its weights come from feature '
                f'{quoted(str(feature.spec.weight_feature))}', remedy='Pass them as weights= of '
                'enqueue, or as the second argument of the layer.')


def _notes_of_job(declaration: Declaration) -> Iterator[Note]:
    if STRATEGIES[declaration.strategy] != Config.DIV_DEFAULT:
        yield Note(where=JOB, code=LOST, fact='The job has its rows in the order of '
                   f'{declaration.strategy} (partition_strategy), which TF2 does not know',
                   remedy='"etpe migrate checkpoint" moves the rows.')
    if declaration.profile_directory:
        yield Note(where=JOB, code=LOST, fact='TF2 writes no profiles of ids '
                   f'(profile_data_directory, {quoted(declaration.profile_directory)})')
    if declaration.multiplier:
        yield Note(where=JOB, code=LOST, fact='TF2 has no function that multiplies gradients '
                   f'(experimental_gradient_multiplier_fn, {declaration.multiplier})',
                   remedy='Multiply the gradients before they are applied.')
    if declaration.origin == 'TF2':
        return
    if any(feature.spec.max_sequence_length for feature in declaration.features):
        yield Note(where=JOB, fact='TF2 gives no lengths of sequences, as TPUEstimator does in '
                   '"<feature>_seq_length_"', remedy='Let the dataset compute them.')
    yield Note(where=JOB, fact='In a dense matrix of ids TPUEstimator takes 0 for a missing '
               'id, and TF2 takes it for an id', remedy='Pass sparse ids if 0 fills up.')
