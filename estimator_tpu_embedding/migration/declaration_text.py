"""Writes a declaration in the form that `etpe migrate config --to` names.

There is a template for both APIs of TF2. A config is written as text by protobuf.
"""

from __future__ import annotations

import collections
import dataclasses
import string
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf import text_format

from ..core.learning_rates import DynamicRate
from ..core.optimizers import Bounds, Optimizer
from ..core.plan import resolve
from ..core.specs import FeatureSpec, TableSpec
from ..errors import ConfigError, Problem
from ..proto.codec import STRATEGIES, Config, RateOfTag, plan_to_config
from . import python_text
from .job_declaration import (
    JOB,
    LOST,
    NO_OPTIMIZER,
    NOT_WRITABLE,
    Declaration,
    Note,
    name_of,
    place,
    some,
)
from .python_text import ENTRY_WIDTH, block, call, comment, number, quoted

PYTHON = ('tf2', 'tfrs')
PROTO = 'textproto'

_SOURCE = '''\
"""Tables and features of a job, for $api."""

$notes

import tensorflow as tf$imports

api = tf.tpu.experimental.embedding

$batch
BATCH_SIZE = $batch_size
BATCH_SIZE_PER_REPLICA = $per_core
$functions
$declared


def $function():
    """Returns the $what. Call it in the scope of the strategy."""
    return $made
'''

_RATE = '''

$job
# It has no argument: it reads a variable that is made in the scope of the
# strategy, and that the training loop increases. It is called while the
# step is traced, and its operations run at every step.
def $name():
    """Returns the learning rate at this step, a scalar tensor."""
    raise NotImplementedError('write $name')
'''

_OF_API = {
    'tf2': {'api': 'TPUEmbedding of TensorFlow 2', 'imports': '',
            'function': 'make_embedding', 'what': 'look-ups'},
    'tfrs': {'api': 'the layer of TensorFlow Recommenders',
             'imports': '\nimport tensorflow_recommenders as tfrs',
             'function': 'make_layer', 'what': 'layer'}}
"""What the source says of each API."""
_TAKES_OPTIMIZERS = {'tf2': 'TPUEmbedding of TF2', 'tfrs': 'The layer of TFRS'}


class Written(NamedTuple):
    """The content of a file, and what a maintainer must know of it."""

    text: str
    notes: tuple[Note, ...] = ()


def written(declaration: Declaration, target: str) -> Written:
    """Returns a declaration in one of the forms of `PYTHON`, or `PROTO`.

    Raises:
      ConfigError: for a config that is not known.
    """
    return _proto(declaration) if target == PROTO else _python(declaration, target)


def _python(declaration: Declaration, target: str) -> Written:
    rates = _rates(table for table in declaration.tables if _is_writable(table, target))
    notes = [*declaration.notes, *_notes_of_job(declaration), *_notes_of_tables(
        declaration, target), *(NOT_WRITABLE(
            JOB, f'the learning rate of {named} is a function of the step ({_origin(rate)})',
            f'Write {name}.') for rate, (name, named) in rates.items())]
    functions = [string.Template(_RATE).substitute(
        name=name, job=comment(f'The rate of {named}. The job had {_origin(rate)}.'))
        for rate, (name, named) in rates.items()]
    definition, own = _optimizers(declaration, rates, target)
    size = declaration.size
    declared = [definition, _dict('TABLES', 'table', notes, {
        table.name: _table(table, own.get(table.name)) for table in declaration.tables}),
        _dict('FEATURES', 'feature', notes, {
            one.name: _feature(one, declaration) for one in declaration.features})]
    return Written(string.Template(_SOURCE).substitute(
        _OF_API[target], notes=_head(declaration, notes), batch=comment(_batch(declaration)),
        batch_size=size and size.batch_size,
        per_core=size and size.batch_size // size.topology.num_cores,
        functions=''.join([*functions, '\n'] if functions else ()),
        declared='\n\n'.join(declared), made=_made(declaration, target)), tuple(notes))


def _head(declaration: Declaration, notes: Sequence[Note]) -> str:
    """Returns the comments at the top; notes of tables and features stand beside them."""
    found = [comment(f'Made by "etpe migrate config" of {quoted(declaration.where)}.')]
    texts = dict.fromkeys(str(note) for note in notes if note.where == JOB)
    elsewhere = len({note.where for note in notes if note.where != JOB})
    if elsewhere:
        texts['1 table or feature below has a note.' if elsewhere == 1 else
              f'{elsewhere} tables or features below have notes.'] = None
    return '\n'.join([*found, *(comment(text, mark='# - ') for text in texts)])


def _batch(declaration: Declaration) -> str:
    if declaration.size is None:
        return ('What was read does not say the batch size. TPUEstimator has it as '
                'train_batch_size, for all cores together.')
    batch_size, topology = declaration.size
    return f'Samples per step: {topology.batch_arithmetic(batch_size)}. A core is a replica.'


def _dict(name: str, kind: str, notes: Iterable[Note], values: Mapping[str, str]) -> str:
    """Returns the assignment of a dict, with the notes of each of its entries."""
    texts: dict[str, list[str]] = {}
    for note in notes:
        texts.setdefault(note.where, []).append(comment(str(note), width=ENTRY_WIDTH))
    return block(f'{name} = {{', ['\n'.join([
        *texts.get(place(kind, key), ()), f'{quoted(key)}: {value}'])
        for key, value in values.items()], '}')


_Rates = Mapping[DynamicRate, tuple[str, str]]
"""The name of each rate that is a function, and its tables.

A function of a program cannot be copied, and a config holds a mere number in its place. So it
becomes a function that raises an error until it is written."""


def _rates(tables: Iterable[TableSpec]) -> _Rates:
    found: dict[DynamicRate, list[str]] = {}
    for table in tables:
        if isinstance(table.rate, DynamicRate):
            found.setdefault(table.rate, []).append(table.name)
    return {rate: (f'learning_rate_{tag}', some(names))
            for tag, (rate, names) in enumerate(found.items())}


def _origin(rate: DynamicRate) -> str:
    """Returns the function in the job, as far as it is known."""
    function: Any = rate.function
    return f'tag {function.tag} in its config' if isinstance(function, RateOfTag) else name_of(
        function)


def _is_writable(table: TableSpec, target: str) -> bool:
    made = table.optimizer
    return made is None or made.field in python_text.CLASSES and (
        target, made.field) != ('tfrs', python_text.NOT_IN_LAYER)


def _optimizers(declaration: Declaration, rates: _Rates, target: str
                ) -> tuple[str, dict[str, str]]:
    """Returns the definition of the optimizer of most tables, and those that others have."""
    tables = declaration.tables
    # Of several that are as common, a constant rate comes first.
    trained = sorted((table for table in tables if table.optimizer is not None and _is_writable(
        table, target)), key=lambda table: table.rate is not None)
    made = {table.name: python_text.optimizer(
        table.optimizer, rates[table.rate][0] if isinstance(table.rate, DynamicRate)
        else number(table.optimizer.learning_rate), declaration.knows_defaults)
        for table in trained if table.optimizer is not None}
    counts = collections.Counter(made.values())
    # A table without its own optimizer would silently take that of the others.
    of_all = max(counts, key=counts.__getitem__, default=None) if (
        len(trained) == len(tables)) else None
    said = '# Some tables have no optimizer here, so there is none for all.\n' if (
        trained and of_all is None) else ''
    return f'{said}OPTIMIZER = {of_all}', {
        name: text for name, text in made.items() if text != of_all}


def _table(table: TableSpec, optimizer: str | None) -> str:
    bins = table.quantization
    return call('api.TableConfig', {
        'vocabulary_size': number(table.vocabulary_size), 'dim': number(table.dimension),
        'initializer': python_text.initializer(table.initializer), 'optimizer': optimizer,
        # Without a combiner each sample has one id, and all combiners give its row.
        'combiner': quoted(table.combiner or 'sum'), 'name': quoted(table.name),
        'quantization_config': None if bins is None else call('api.QuantizationConfig', {
            'num_buckets': number(bins.num_buckets), 'lower': number(bins.lower),
            'upper': number(bins.upper)})})


def _feature(one: FeatureSpec, declaration: Declaration) -> str:
    return call('api.FeatureConfig', {
        'table': f'TABLES[{quoted(one.table)}]',
        'max_sequence_length': number(one.max_sequence_length) if one.max_sequence_length
        else None,
        'validate_weights_and_indices': 'False' if one.name in declaration.unsafe else None,
        'output_shape': None if one.output_shape is None
        else repr(list(map(int, one.output_shape))),
        'name': None if one.name in declaration.unnamed else quoted(one.name)})


def _made(declaration: Declaration, target: str) -> str:
    is_layer = target == 'tfrs'
    return textwrap.indent(call(
        'tfrs.layers.embedding.TPUEmbedding' if is_layer else 'api.TPUEmbedding', {
            'feature_config': 'FEATURES', 'optimizer': 'OPTIMIZER',
            'pipeline_execution_with_tensor_core': 'True' if declaration.pipelined else None,
            'batch_size': 'BATCH_SIZE_PER_REPLICA' if is_layer else None}), '    ').lstrip()


def _notes_of_tables(declaration: Declaration, target: str) -> Iterator[Note]:
    for table in declaration.tables:
        where = place('table', table.name)
        yield from _notes_of_training(table, where, target, declaration.knows_defaults)
        if table.hot_id_replication:
            yield LOST(where, 'TF2 does not replicate hot ids (hot_id_replication)',
                       'It changes no number.')
        if declaration.knows_defaults and table.combiner is None:
            yield Note(where, 'the job had no combiner here, as each sample has one id',
                       "'sum' gives the same; pass dense ids.")
    for feature in declaration.features:
        if feature.weight_feature not in (None, feature.name):
            yield Note(
                place('feature', feature.name), 'its weights come from feature '
                f'{quoted(str(feature.weight_feature))}', 'Pass them as weights= of '
                'enqueue, or as the second argument of the layer.')


def _notes_of_job(declaration: Declaration) -> Iterator[Note]:
    if STRATEGIES[declaration.strategy] != Config.DIV_DEFAULT:
        yield LOST(JOB, f'The job has its rows in the order of {declaration.strategy} '
                   '(partition_strategy), which TF2 does not know',
                   '"etpe migrate checkpoint" moves the rows.')
    if declaration.profile_directory:
        yield LOST(JOB, 'TF2 writes no profiles of ids (profile_data_directory, '
                   f'{quoted(declaration.profile_directory)})')
    if declaration.multiplier:
        yield LOST(JOB, 'TF2 has no function that multiplies gradients '
                   f'(experimental_gradient_multiplier_fn, {declaration.multiplier})',
                   'Multiply the gradients before they are applied.')
    if declaration.is_tf2:
        return
    if any(feature.max_sequence_length for feature in declaration.features):
        yield Note(JOB, 'TF2 gives no lengths of sequences, as TPUEstimator does in '
                   '"<feature>_seq_length_"', 'Let the dataset compute them.')
    yield Note(JOB, 'In a dense matrix of ids TPUEstimator takes 0 for a missing id, and TF2 '
               'takes it for an id', 'Pass sparse ids if 0 fills up.')


def _notes_of_training(table: TableSpec, where: str, target: str, knows_defaults: bool
                       ) -> Iterator[Note]:
    """Yields what the target cannot say of the optimizer and the initializer of a table."""
    made: Any = table.optimizer
    if not _is_writable(table, target):
        yield NO_OPTIMIZER(where, f'{_TAKES_OPTIMIZERS[target]} has no optimizer like '
                           f'{_described(table, knows_defaults)}', 'The table has none here: '
                           'choose one yourself, with a rate of its own.')
    elif made is not None and made.field == 'ftrl':
        if knows_defaults and not made.initial_accumulator > 0:
            yield LOST(where, 'its FTRL accumulators begin at 0, and TF2 takes only values above 0',
                       'The default stands here. It matters for rows that no checkpoint brings.')
        if made.initial_linear:
            yield LOST(where, 'the linear terms of its FTRL do not begin at 0, which no argument '
                       'says')
    if table.initializer is not None and python_text.initializer(table.initializer) is None:
        yield NOT_WRITABLE(where, 'its initializer cannot be written as source '
                           f'({name_of(table.initializer)})',
                           'Import it, and give it to the table.')


def _described(table: TableSpec, knows_defaults: bool) -> str:
    """Returns the algorithm of a table with its numbers, for a comment."""
    made: Any = table.optimizer
    rest = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    if table.rate is not None:
        rest['learning_rate'] = 'dynamic'
    if not knows_defaults:
        rest.pop(python_text.OF_SLOTS, None)
    plain = {field.name: field.default for field in dataclasses.fields(Optimizer)}
    told = ', '.join(f'{name}={_text(value)}' for name, value in rest.items()
                     if name not in plain or value != plain[name])
    return f'{made.field} ({told})'


def _text(value: object) -> str:
    if isinstance(value, Bounds):
        return f'[{value.lower}, {value.upper}]'
    return value if isinstance(value, str) else number(value)


def _proto(declaration: Declaration) -> Written:
    """Returns the config of an object, and notes of what no config holds."""
    notes = [note for note in declaration.notes if note.code]
    if declaration.multiplier:
        notes.append(LOST(JOB, 'A config has no function that multiplies gradients '
                          f'(experimental_gradient_multiplier_fn, {declaration.multiplier})'))
    return Written('\n'.join([*(comment(f'{note.where}: {note}') for note in notes),
                              of_config(_config_of(declaration)).text]), tuple(notes))


def _config_of(declaration: Declaration) -> Config:
    if declaration.config is not None:
        return declaration.config
    if declaration.size is None:
        raise ConfigError(Problem(
            'E674', declaration.where, 'a config holds the batch size and the number of cores, '
            'which this object does not say', remedy='State them, as in --batch-size 512 --hosts 1 '
            '--cores 8.'))
    return plan_to_config(resolve(
        declaration.tables, declaration.features, declaration.size.topology,
        batch_size=declaration.size.batch_size,
        strategy=declaration.strategy, pipelined=declaration.pipelined,
        profile_directory=declaration.profile_directory))


def of_config(config: Config) -> Written:
    """Returns a config as text: equal configs give equal text."""
    # The default of `as_utf8` depends on protobuf, and would let names steer a terminal.
    return Written(text_format.MessageToString(config, as_utf8=False))
