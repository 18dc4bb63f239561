"""Writes a declaration in the form that `etpe migrate config --to` names.

There is a template for each API. A config is written as text or JSON by protobuf.
"""

from __future__ import annotations

import collections
import dataclasses
import string
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from google.protobuf import json_format, text_format

from ...core.optimizer_base import Bounds
from ...core.plan import resolve
from ...core.rates import DynamicRate
from ...core.specs import Topology
from ...errors import ConfigError, Problem, counted
from ...proto.codec import STRATEGIES, Config, RateOfTag, plan_to_config
from . import calls
from .calls import Argument, Call, Expression, call, comment, number, quoted
from .facts import (
    JOB,
    LOST,
    NO_OPTIMIZER,
    NOT_WRITABLE,
    Declaration,
    Feature,
    Note,
    Table,
    name_of,
    place,
    some,
)

PYTHON = ('tf2', 'tfrs', 'tf1')
PROTO = ('textproto', 'json')

_DECLARED = '''
api = tf.tpu.experimental.embedding

$batch
BATCH_SIZE = $batch_size
BATCH_SIZE_PER_REPLICA = $per_core
$functions
$declared
'''

_TF2 = f'''\
"""Tables and features of a job, for TPUEmbedding of TensorFlow 2."""

$notes

import tensorflow as tf
{_DECLARED}

def make_embedding():
    """Returns the look-ups. Call it in the scope of the strategy."""
$made
'''

_TFRS = f'''\
"""Tables and features of a job, for the layer of TensorFlow Recommenders."""

$notes

import tensorflow as tf
import tensorflow_recommenders as tfrs
{_DECLARED}

def make_layer():
    """Returns the layer. Call it in the scope of the strategy."""
$made
'''

_TF1 = '''\
"""Tables and features of a job, for TPUEstimator."""

$notes

import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_embedding

api = tf.tpu.experimental

$batch
TRAIN_BATCH_SIZE = $batch_size
$functions
$declared

$made
'''

_RATE = '''

$job
def $name(global_step):
    """Returns the learning rate at a step, a scalar tensor."""
    raise NotImplementedError('write $name')
'''

_RATE_OF_TF2 = '''

$job
# It has no argument: it reads a variable that is made in the scope of the
# strategy, and that the training loop increases. It is called while the
# step is traced, and its operations run at every step.
def $name():
    """Returns the learning rate at this step, a scalar tensor."""
    raise NotImplementedError('write $name')
'''

_MULTIPLIER = '''

def gradient_multiplier(global_step):
    """Returns the factor of all gradients of tables at a step."""
    raise NotImplementedError('write gradient_multiplier')
'''


_TARGETS = {'tf2': (_TF2, 'TPUEmbedding of TF2'), 'tfrs': (_TFRS, 'The layer of TFRS'),
            'tf1': (_TF1, 'TPUEstimator')}
"""The template of each API, and who takes optimizers there."""

_Key = TypeVar('_Key', bound=Hashable)


class Written(NamedTuple):
    """The content of a file, and what a maintainer must know of it."""

    text: str
    notes: tuple[Note, ...] = ()


def written(declaration: Declaration, target: str) -> Written:
    """Returns a declaration in one of the forms of `PYTHON` and `PROTO`.

    Raises:
      ConfigError: for a config that is not known.
    """
    return (_python if target in PYTHON else _proto)(declaration, target)


def _python(declaration: Declaration, target: str) -> Written:
    """Fills in the template of an API."""
    is_old = target == 'tf1'
    used = {feature.spec.table for feature in declaration.features}
    tables = [table for table in declaration.tables if table.name in used or not is_old]
    rates = _rates(table for table in tables if _is_writable(table, target))
    own = _notes_of_tf1(declaration, used) if is_old else _notes_of_tf2(declaration, target, used)
    notes = [*declaration.notes, *own, *(NOT_WRITABLE(
        JOB, f'the learning rate of {named} is a function of the step ({_origin(rate)})',
        f'Write {name}.') for rate, (name, named) in rates.items())]
    functions = [string.Template(_RATE if is_old else _RATE_OF_TF2).substitute(
        name=name, job=comment(f'The rate of {named}. The job had {_origin(rate)}.'))
        for rate, (name, named) in rates.items()]
    if declaration.multiplier and is_old:
        functions.append(_MULTIPLIER)
    definitions, training = _optimizers(declaration.tables, rates, target)
    of_table, of_feature, made = (_tf1_table, _tf1_feature, _tf1_spec(declaration)) if is_old else (
        _tf2_table, _tf2_feature, _tf2_made(declaration, target))
    declared = [definitions, _dict('TABLES', 'table', notes, {
        table.name: of_table(table, training.get(table.name, {}), target) for table in tables}),
        _dict('FEATURES', 'feature', notes, {
            feature.spec.name: of_feature(feature) for feature in declaration.features})]
    return Written(string.Template(_TARGETS[target][0]).substitute(
        notes=_head(declaration, notes), batch=comment(_batch(declaration)),
        batch_size=_batch_size(declaration), per_core=declaration.sizes.batch_size_per_core,
        functions=''.join([*functions, '\n'] if functions else ()),
        declared='\n\n'.join(declared), made=made), tuple(notes))


def _head(declaration: Declaration, notes: Sequence[Note]) -> str:
    """Returns the comments at the top; notes of tables and features stand beside them."""
    found = [comment(f'Made by "etpe migrate config" of {quoted(declaration.where)}.')]
    texts = dict.fromkeys(str(note) for note in notes if note.where == JOB)
    elsewhere = len({note.where for note in notes if note.where != JOB})
    if elsewhere:
        texts['1 table or feature below has a note.' if elsewhere == 1 else
              f'{elsewhere} tables or features below have notes.'] = None
    return '\n'.join([*found, *(comment(text, mark='# - ') for text in texts)])


def _batch_size(declaration: Declaration) -> int | None:
    """Returns the samples of all cores per step, if they are known."""
    per_core, _, cores = declaration.sizes
    return None if per_core is None or cores is None else per_core * cores


def _batch(declaration: Declaration) -> str:
    per_core, hosts, cores = declaration.sizes
    whole = _batch_size(declaration)
    if whole is not None:
        return (f'{counted(whole, "sample")} = {counted(cores or 0, "core")} x {per_core}, on '
                f'{counted(hosts or 1, "host")}. A core is a replica.')
    more = ' TPUEstimator has it as train_batch_size, for all cores together.'
    return f'What was read does not say the batch size.{more * (declaration.origin == "TF1")}'


def _dict(name: str, kind: str, notes: Iterable[Note], values: Mapping[str, Call]) -> str:
    """Returns the assignment of a dict, with the notes of each of its entries."""
    texts: dict[str, list[str]] = {}
    for note in notes:
        texts.setdefault(note.where, []).append(str(note))
    return calls.written(f'{name} = ', Call('{', [
        Argument(f'{quoted(key)}: ', value, texts.get(place(kind, key), ()))
        for key, value in values.items()]))


_Rates = Mapping[DynamicRate, tuple[str, str]]
"""The name of each rate that is a function, and its tables.

A function of a program cannot be copied, and a config holds a mere number in its place. So it
becomes a function that raises an error until it is written."""


def _rates(tables: Iterable[Table]) -> _Rates:
    found: dict[DynamicRate, list[str]] = {}
    for table in tables:
        if table.dynamic is not None:
            found.setdefault(table.dynamic, []).append(table.name)
    return {rate: (f'learning_rate_{tag}', some(names))
            for tag, (rate, names) in enumerate(found.items())}


def _origin(rate: DynamicRate) -> str:
    """Returns the function in the job, as far as it is known."""
    function: Any = rate.function
    if isinstance(function, RateOfTag):
        return f'tag {function.tag} in its config'
    return name_of(getattr(function, 'function', function))  # TF2's, which takes no step.


def _is_writable(table: Table, target: str) -> bool:
    """Whether the target has the optimizer of a table, if the table has one."""
    return not table.algorithm or (table.spec.optimizer is not None
                                   and table.algorithm in calls.CLASSES[target])


def _optimizers(tables: Sequence[Table], rates: _Rates, target: str
                ) -> tuple[str, dict[str, dict[str, Expression]]]:
    """Returns the definitions of optimizers, and by table what its TableConfig says of them.

    Most tables take the optimizer of all. Others have one of their own, by a constant if several
    have it. In TF1 tables that differ in nothing but the rate share it: a table may have its rate.
    """
    is_old = target == 'tf1'
    trained = [table for table in tables if table.spec.optimizer is not None
               and _is_writable(table, target)]

    def own(table: Table) -> Hashable:
        if is_old:
            return table.spec.optimizer, table.is_whole
        return table.spec.optimizer, table.dynamic, table.packed, table.is_whole

    def shared(table: Table) -> Hashable:
        assert table.spec.optimizer is not None
        return (dataclasses.replace(table.spec.optimizer, learning_rate=0.0), table.is_whole
                ) if is_old else own(table)

    def made(table: Table, rate: float | None = None) -> Call:
        name = None if is_old or table.dynamic is None else rates[table.dynamic][0]
        return calls.optimizer(table, target, name or number(_rate(table) if rate is None
                                                             else rate))

    # Of several that are as common, a constant rate comes first in TF2.
    in_order = sorted(trained, key=lambda table: not is_old and table.dynamic is not None)
    # A table without its own optimizer would silently take that of the others.
    of_all = _commonest(map(shared, in_order)) if len(trained) == len(tables) else None
    common = [table for table in trained if shared(table) == of_all]
    rate = _commonest(_rate(table) for table in common if table.dynamic is None) or 0.0
    others = {table.name: own(table) for table in trained if shared(table) != of_all}
    calls_of = {own(table): made(table) for table in trained if table.name in others}
    names = _constants([(key, calls_of[key]) for key in others.values()])
    lines = [calls.written(f'{name} = ', calls_of[key]) for key, name in names.items()]
    if trained and not common:
        lines.append('# Some tables have no optimizer here, so there is none for all.')
    lines.append(calls.written(
        'OPTIMIZATION_PARAMETERS = ' if is_old else 'OPTIMIZER = ',
        made(common[0], rate if is_old else None) if common else 'None'))
    training: dict[str, dict[str, Expression]] = {table.name: {} for table in trained}
    for table in trained:
        found, function = training[table.name], table.dynamic
        if is_old and function is not None and function in rates:
            found['learning_rate_fn'] = rates[function][0]
        elif is_old and (table.name not in others and _rate(table) != rate or (
                table.algorithm == calls.WITHOUT_TAIL and _rate(table) != 1.0)):
            found['learning_rate'] = number(_rate(table))  # The parameters may have none.
        if table.name in others:
            key = 'optimization_parameters' if is_old else 'optimizer'
            found[key] = names.get(others[table.name]) or calls_of[others[table.name]]
    return '\n'.join(lines), training


def _rate(table: Table) -> float:
    assert table.spec.optimizer is not None
    return table.spec.optimizer.learning_rate


def _constants(keys: Sequence[tuple[Hashable, Call]]) -> dict[Hashable, str]:
    """Returns a name for each key that appears twice or more, after the class that is called."""
    counts = collections.Counter(key for key, _ in keys)
    of_name: collections.Counter[str] = collections.Counter()
    names: dict[Hashable, str] = {}
    for key, made in dict(keys).items():
        if counts[key] > 1:
            name = made.opening.rpartition('.')[2].removesuffix('(').removesuffix(
                'Parameters').upper()
            of_name[name] += 1
            names[key] = name if of_name[name] == 1 else f'{name}_{of_name[name]}'
    return names


def _commonest(keys: Iterable[_Key]) -> _Key | None:
    """Returns the key that appears most often, the first if there are several; `None` of none."""
    counts = collections.Counter(keys)
    return max(counts, key=counts.__getitem__, default=None)


def _tf2_table(table: Table, training: Mapping[str, Expression], target: str) -> Call:
    spec, bins = table.spec, table.spec.quantization
    return call('api.TableConfig', {
        'vocabulary_size': number(spec.vocabulary_size), 'dim': number(spec.dimension),
        'initializer': calls.initializer(table, target), **training,
        # Without a combiner each sample has one id, and all combiners give its row.
        'combiner': quoted(spec.combiner or 'sum'), 'name': quoted(table.name),
        'quantization_config': None if bins is None else call('api.QuantizationConfig', {
            'num_buckets': number(bins.num_buckets), 'lower': number(bins.lower),
            'upper': number(bins.upper)})}, combiner=_remark(table))


def _remark(table: Table) -> str:
    return '' if table.is_whole else 'not in the config'


def _tf2_feature(feature: Feature) -> Call:
    spec = feature.spec
    return call('api.FeatureConfig', {
        'table': f'TABLES[{quoted(spec.table)}]',
        'max_sequence_length': number(spec.max_sequence_length) if spec.max_sequence_length
        else None, 'validate_weights_and_indices': None if feature.validate else 'False',
        'output_shape': None if spec.output_shape is None
        else repr(list(map(int, spec.output_shape))),
        'name': quoted(feature.declared_name) if feature.declared_name else None})


def _tf2_made(declaration: Declaration, target: str) -> str:
    is_layer = target == 'tfrs'
    return calls.written('return ', call(
        'tfrs.layers.embedding.TPUEmbedding' if is_layer else 'api.TPUEmbedding', {
            'feature_config': 'FEATURES', 'optimizer': 'OPTIMIZER',
            'pipeline_execution_with_tensor_core': 'True' if declaration.pipelined else None,
            'batch_size': 'BATCH_SIZE_PER_REPLICA' if is_layer else None},
        batch_size='It is not the global one.'), indent='    ')


def _tf1_table(table: Table, training: Mapping[str, Expression], target: str) -> Call:
    spec = table.spec
    return call('tpu_embedding.TableConfig', {
        'vocabulary_size': number(spec.vocabulary_size), 'dimension': number(spec.dimension),
        'initializer': calls.initializer(table, target),
        'combiner': 'None' if spec.combiner is None else quoted(spec.combiner),
        'hot_id_replication': 'True' if spec.hot_id_replication else None, **training},
        combiner=_remark(table))


def _tf1_feature(feature: Feature) -> Call:
    spec = feature.spec
    return call('tpu_embedding.FeatureConfig', {
        'table_id': quoted(spec.table),
        'max_sequence_length': number(spec.max_sequence_length) if spec.max_sequence_length
        else None, 'weight_key': quoted(spec.weight_feature) if spec.weight_feature not in (
            None, spec.name) else None})


def _tf1_spec(declaration: Declaration) -> str:
    directory = declaration.profile_directory
    return calls.written('EMBEDDING_CONFIG_SPEC = ', call(
        'tf.estimator.tpu.experimental.EmbeddingConfigSpec', {
            'feature_to_config_dict': 'FEATURES', 'table_to_config_dict': 'TABLES',
            'optimization_parameters': 'OPTIMIZATION_PARAMETERS',
            'partition_strategy': quoted(declaration.strategy),
            'pipeline_execution_with_tensor_core': 'True' if declaration.pipelined else None,
            'profile_data_directory': quoted(directory) if directory else None,
            'experimental_gradient_multiplier_fn':
                'gradient_multiplier' if declaration.multiplier else None}))


def _notes_of_tf2(declaration: Declaration, target: str, used: set[str]) -> Iterator[Note]:
    yield from _notes_of_job_in_tf2(declaration)
    for table in declaration.tables:
        where = place('table', table.name)
        yield from _notes_of_training(table, where, target)
        if table.spec.hot_id_replication:
            yield LOST(where, 'TF2 does not replicate hot ids (hot_id_replication)',
                       'It changes no number.')
        if table.name not in used:
            yield LOST(where, 'no feature looks up in this table, and TF2 knows only tables of '
                       'features')
        if table.is_whole and table.spec.combiner is None:
            yield Note(where, 'the job had no combiner here, as each sample has one id',
                       "'sum' gives the same; pass dense ids.")
    for feature in declaration.features:
        if feature.spec.weight_feature not in (None, feature.spec.name):
            yield Note(
                place('feature', feature.spec.name), 'its weights come from feature '
                f'{quoted(str(feature.spec.weight_feature))}', 'Pass them as weights= of '
                'enqueue, or as the second argument of the layer.')


def _notes_of_job_in_tf2(declaration: Declaration) -> Iterator[Note]:
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
    if declaration.origin == 'TF2':
        return
    if any(feature.spec.max_sequence_length for feature in declaration.features):
        yield Note(JOB, 'TF2 gives no lengths of sequences, as TPUEstimator does in '
                   '"<feature>_seq_length_"', 'Let the dataset compute them.')
    yield Note(JOB, 'In a dense matrix of ids TPUEstimator takes 0 for a missing id, and TF2 '
               'takes it for an id', 'Pass sparse ids if 0 fills up.')


def _notes_of_tf1(declaration: Declaration, used: set[str]) -> Iterator[Note]:
    if declaration.multiplier:
        yield NOT_WRITABLE(JOB, 'The gradients are multiplied by a function of the program '
                           f'({declaration.multiplier})', 'Write gradient_multiplier.')
    if declaration.origin == 'TF2':
        yield Note(JOB, 'TPUEstimator takes 0 in dense ids of a table with a combiner for a '
                   'missing id, and TF2 takes it for an id', 'Pass sparse ids.')
        yield Note(JOB, 'TF2 takes weights with the ids, and TPUEstimator from a feature',
                   'If a feature has weights, name theirs as its weight_key.')
    for table in declaration.tables:
        where = place('table', table.name)
        if table.name not in used:
            yield LOST(JOB, f'{where} has no feature, and TPUEstimator refuses such a table',
                       'It is left out.')
            continue
        yield from _notes_of_training(table, where, 'tf1')
        if table.spec.quantization is not None:
            yield LOST(where, 'TPUEstimator does not round rows that are looked up '
                       f'({table.spec.quantization})')
        if not table.algorithm:
            yield LOST(where, 'the table is not trained, and TPUEstimator trains every table',
                       'Give it a learning rate of 0.0.')
    for feature in declaration.features:
        where = place('feature', feature.spec.name)
        if feature.spec.output_shape is not None:
            yield LOST(where, 'TPUEstimator has no output shape '
                       f'({list(feature.spec.output_shape)})')
        if not feature.validate:
            yield LOST(where, 'TPUEstimator has no validate_weights_and_indices for features of '
                       'a dict')


def _notes_of_training(table: Table, where: str, target: str) -> Iterator[Note]:
    """Yields what the target cannot say of the optimizer and the initializer of a table."""
    made = table.spec.optimizer
    if made is not None and _is_writable(table, target):
        yield from _notes_of_optimizer(table, where, target == 'tf1')
    elif table.algorithm:
        yield NO_OPTIMIZER(where, f'{_TARGETS[target][1]} has no optimizer like '
                           f'{_described(table)}', 'The table has none here: choose one '
                           'yourself, with a rate of its own.')
    if calls.is_initializer_lost(table):
        yield NOT_WRITABLE(where, 'its initializer cannot be written as source '
                           f'({name_of(table.spec.initializer)})',
                           'Import it, and give it to the table.')


def _notes_of_optimizer(table: Table, where: str, is_old: bool) -> Iterator[Note]:
    made: Any = table.spec.optimizer
    if not is_old and made.field == 'ftrl' and table.is_whole and not made.initial_accumulator > 0:
        yield LOST(where, 'its FTRL accumulators begin at 0, and TF2 takes only values above 0',
                   'The default stands here. It matters for rows that no checkpoint brings.')
    if getattr(made, 'initial_linear', 0):
        yield LOST(where, 'the linear terms of its FTRL do not begin at 0, which no argument says')
    if made.field == calls.WITHOUT_TAIL and any(
            getattr(made, name) != value for name, value in _PLAIN.items()):
        yield LOST(where, 'FrequencyEstimatorParameters has no arguments for bounds, a decay or '
                   'accumulation')
    if table.packed and is_old:
        yield LOST(where, 'TPUEstimator does not pack narrow rows '
                   '(low_dimensional_packing_status)', 'It changes no number.')


_PLAIN = {'clip_weights': Bounds(), 'clip_gradients': Bounds(), 'decay': None,
          'decay_times_rate': False, 'accumulate': True}
"""Attributes of all optimizers, and their defaults."""


def _described(table: Table) -> str:
    """Returns the algorithm of a table with its numbers, for a comment."""
    made: Any = table.spec.optimizer
    if made is None:
        return table.algorithm
    rest = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    if table.dynamic is not None:
        rest['learning_rate'] = 'dynamic'
    if not table.is_whole:
        rest.pop(calls.OF_SLOTS, None)
    told = ', '.join(f'{name}={_text(value)}' for name, value in rest.items()
                     if name not in _PLAIN or value != _PLAIN[name])
    return f'{table.algorithm} ({told})'


def _text(value: object) -> str:
    if isinstance(value, Bounds):
        return f'[{value.lower}, {value.upper}]'
    return value if isinstance(value, str) else number(value)


def _proto(declaration: Declaration, target: str) -> Written:
    """Returns the config of an object, and notes of what no config holds."""
    text = of_config(_config_of(declaration), target).text
    notes = [note for note in declaration.notes if note.code]
    if declaration.multiplier:
        notes.append(LOST(JOB, 'A config has no function that multiplies gradients '
                          f'(experimental_gradient_multiplier_fn, {declaration.multiplier})'))
    said = [] if target == 'json' else [  # JSON has no comments.
        comment(f'{note.where}: {note}') for note in notes]
    return Written('\n'.join([*said, text]), tuple(notes))


def _config_of(declaration: Declaration) -> Config:
    if declaration.config is not None:
        return declaration.config
    per_core, hosts, cores = declaration.sizes
    if declaration.origin != 'TF1' or per_core is None or not (cores and hosts):
        raise ConfigError(Problem(
            'E674', declaration.where, 'a config holds the batch size and the number of cores, '
            'which this object does not say', remedy='State them for a spec of TPUEstimator, as '
            'in --batch-size 512 --hosts 1 --cores 8. Build a TPUEmbedding of TF2 before, or write '
            'it with --to tf1 and take that EMBEDDING_CONFIG_SPEC.'))
    return plan_to_config(resolve(
        [table.spec for table in declaration.tables],
        [feature.spec for feature in declaration.features],
        Topology(num_hosts=hosts, cores_per_host=cores // hosts), batch_size=per_core * cores,
        strategy=declaration.strategy, pipelined=declaration.pipelined,
        profile_directory=declaration.profile_directory))


def of_config(config: Config, target: str) -> Written:
    """Returns a config in one of the forms of `PROTO`: equal configs give equal text."""
    if target == 'json':
        return Written(json_format.MessageToJson(config, preserving_proto_field_name=True) + '\n')
    # The default of `as_utf8` depends on protobuf, and would let names steer a terminal.
    return Written(text_format.MessageToString(config, as_utf8=False))
