"""Finds the calls for TPUs in a file, and says what a program gives as their arguments.

Each name of a TPU construct gets one short form, by whatever path a script reaches it:
`tf.contrib.tpu.TPUConfig`, `tf.estimator.tpu.TPUConfig` and
`tensorflow.python.tpu.tpu_config.TPUConfig` are all facts of the kind `'TPUConfig'`. Other kinds:

| kind | what it is |
|---|---|
| `'flag'` | the definition of a flag of absl, `tf.flags` or argparse |
| `'rate'` | a function of a learning rate that may be made once and is made again and again |
| `'minimize'`, `'optimizer'` | a call that trains variables; one that makes an optimizer for them |
| `'sum'` | any mention of a sum over cores |
| `'fixed batch'` | a batch in an `input_fn` that does not come from its `params` |
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..compat.refused_names import FEED_OPERATIONS
from .findings import Fact, Place, ScannedFile
from .syntax import Nodes, last_name, text_of, written

PlaceOf = Callable[[ast.AST], Place]
PathsOf = Callable[[ast.expr], tuple[str, ...]]


class Flag(NamedTuple):
    """The value of a command-line flag, such as `FLAGS.use_tpu`, as the source has it."""

    name: str
    written: str


UNREAD = object()
"""A value that the source does not show."""
_FLAGS = frozenset('FLAGS flags args arguments opt opts options parsed parsed_args'.split())
"""What scripts call the object with the values of their flags."""
_ROOTS = frozenset({
    'tensorflow', 'tensorflow_core', 'tensorflow_estimator', 'estimator_tpu_embedding'})
_UNIQUE = frozenset('EmbeddingConfigSpec InfeedQueue TPUConfig TPUEstimator batch_parallel '
                    'collective_permute'.split())
"""Names that nothing else in TensorFlow has."""
_OF_TPU = frozenset(
    'RunConfig TPUEmbedding all_to_all embedding_column shard shared_embedding_columns'.split())
"""Names that mean a TPU below a module for TPUs only."""
_OF_TF2 = frozenset({
    'embedding', 'tpu_embedding_v1', 'tpu_embedding_v2', 'tpu_embedding_for_serving'})
"""Modules whose `TPUEmbedding` is that of TF2."""
READERS = frozenset({'NewCheckpointReader', 'load_checkpoint', 'load_variable'})
"""They read the tensors of a checkpoint as they are stored."""
_OPERATIONS = {name.lower() for name in FEED_OPERATIONS}
_WORDS = frozenset({*_UNIQUE, *_OF_TPU, *READERS, 'Estimator', 'embedding_column_v2',
                    'shared_embedding_columns_v2'})

POSITIONS = {  # parameters that may be given by position, in order
    'TPUConfig': ('iterations_per_loop', 'num_shards', 'num_cores_per_replica',
                  'per_host_input_for_training'),
    'TPUEstimator': ('model_fn', 'model_dir', 'config', 'params', 'use_tpu', 'train_batch_size'),
    'shard': ('computation', 'inputs', 'num_shards'),
    'Estimator': ('model_fn', 'model_dir'),
    **{name: ('checkpoint',) for name in READERS}}
COLUMNS = ('embedding_column', 'shared_embedding_columns')
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp,
          ast.GeneratorExp)
_SUMS = ('CrossShardOptimizer', 'cross_replica_sum')


def construct_of(path: str) -> str | None:
    """Returns the short form of the path of a name; `None` for all other names.

    >>> construct_of('tensorflow.python.tpu.tpu_config.TPUConfig')
    'TPUConfig'
    >>> construct_of('tensorflow.tpu.experimental.embedding.TPUEmbedding') is None
    True
    """
    root, *modules = path.split('.')
    if root not in _ROOTS or not modules:
        return None
    name = modules.pop().removesuffix('_v2')
    if _is_operation(name):
        return 'feed operation'
    if name in _UNIQUE or name in READERS or name == 'Estimator' and 'estimator' in modules:
        return name
    is_of_tpu = (any(part.startswith('tpu') for part in modules)
                 or root == 'estimator_tpu_embedding' and not modules)
    return name if name in _OF_TPU and is_of_tpu and not _OF_TF2.intersection(modules) else None


def facts_of(nodes: Nodes, paths_of: PathsOf, place_of: PlaceOf) -> list[Fact]:
    """Returns the facts of one file, in the order of the source."""
    found = list(_sums(nodes, place_of))
    for call in nodes.of(ast.Call):
        name = last_name(call)
        if name in ('minimize', 'apply_gradients') and isinstance(call.func, ast.Attribute):
            found.append(Fact('minimize', place_of(call.func), {'name': name}))
        elif name.endswith('Optimizer') and name not in _SUMS:
            found.append(Fact('optimizer', place_of(call.func), {'name': name}))
        elif name == 'batch' and call.args and _is_fixed(call, nodes):
            found.append(Fact('fixed batch', place_of(call), {
                'written': f'batch({written(call.args[0])})'}))
        elif name.startswith('DEFINE_') or name == 'add_argument' and call.args:
            found.append(_flag(call, place_of))
        elif isinstance(call.func, ast.Name) or name in _WORDS or _is_operation(name):
            path, kind = next(((path, kind) for path in paths_of(call.func)
                               if (kind := construct_of(path))), ('', ''))
            if kind:
                found += _construct(call, kind, path, nodes, place_of)
    return sorted(found, key=lambda fact: (fact.place.cell, fact.place[1:3]))


def _construct(call: ast.Call, kind: str, path: str, nodes: Nodes, place_of: PlaceOf
               ) -> Iterator[Fact]:
    """Yields the fact of a construct, and perhaps one of a function of its rate."""
    by_position = itertools.takewhile(
        lambda pair: not isinstance(pair[1], ast.Starred), zip(POSITIONS.get(kind, ()), call.args))
    arguments = dict(by_position) | {each.arg: each.value for each in call.keywords if each.arg}
    yield Fact(kind, place_of(call.func), {
        'path': path, 'written': written(call.func),
        'arguments': {name: _value(each) for name, each in arguments.items()},
        'places': {name: place_of(each) for name, each in arguments.items()},
        'is_open': any(isinstance(each, ast.Starred) for each in call.args)
        or any(each.arg is None for each in call.keywords)})
    rate = arguments.get('learning_rate_fn')
    if kind in COLUMNS and rate is not None:
        yield from _rate(rate, nodes, place_of)


def _is_operation(name: str) -> bool:
    return name.replace('_', '').lower() in _OPERATIONS


def _value(node: ast.expr | None) -> object:
    """Returns what is written: a literal, a flag, or a member of `InputPipelineConfig`."""
    if node is None:
        return None
    if isinstance(node, ast.Attribute):
        owner = last_name(node.value)
        if owner == 'InputPipelineConfig':
            return node.attr
        return Flag(node.attr, f'{owner}.{node.attr}') if owner in _FLAGS else UNREAD
    return node.value if isinstance(node, ast.Constant) and (
        node.value is None or isinstance(node.value, (bool, int, float, str))) else UNREAD


def _rate(rate: ast.expr, nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields a fact if a function is made for one table, from nothing that differs for another."""
    if not isinstance(rate, ast.Lambda) and last_name(rate) != 'partial':
        return
    around = [above for above in nodes.above(rate) if not isinstance(above, ast.Module)]
    bound = {one.id for above in around for one in ast.walk(above)
             if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    bound.update(one.arg for above in around if isinstance(above, ast.FunctionDef)
                 for one in ast.walk(above.args) if isinstance(one, ast.arg))
    if bound.isdisjoint(one.id for one in ast.walk(rate) if isinstance(one, ast.Name)):
        yield Fact('rate', place_of(rate), {
            'key': ast.dump(rate), 'is_repeated': any(isinstance(one, _LOOPS) for one in around),
            'how': 'a lambda' if isinstance(rate, ast.Lambda) else 'a functools.partial'})


def _is_fixed(call: ast.Call, nodes: Nodes) -> bool:
    """Whether a function that gets `params` takes a number or a flag for the size of its batch."""
    value = _value(call.args[0])
    return (isinstance(value, Flag) or type(value) is int and value > 1) and any(
        each.arg == 'params' for above in nodes.above(call)
        if isinstance(above, ast.FunctionDef) for each in above.args.args)


def _flag(call: ast.Call, place_of: PlaceOf) -> Fact:
    """Returns the fact of a flag: its name, the option of the command line, and its default."""
    by_name = {each.arg: each.value for each in call.keywords}
    texts = [text_of(each) or '' for each in call.args]
    default = by_name.get('default')
    if last_name(call) == 'add_argument':
        option = next((each for each in texts if each.startswith('--')), texts[0])
        name = text_of(by_name.get('dest')) or option.lstrip('-').replace('-', '_')
    else:
        name = texts[0] if texts else text_of(by_name.get('name')) or ''
        option, default = f'--{name}', call.args[1] if len(call.args) > 1 else default
    action = text_of(by_name.get('action'))
    return Fact('flag', place_of(call), {
        'name': name, 'option': option, 'default': action == 'store_false'
        if default is None and action in ('store_true', 'store_false') else _value(default)})


def _sums(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields the first mention of a sum over cores, in whatever form."""
    words = ((node, str(getattr(node, name))) for kind, name in (
        (ast.Attribute, 'attr'), (ast.Name, 'id'), (ast.alias, 'name'), (ast.Constant, 'value'))
        for node in nodes.of(kind))
    yield from [Fact('sum', place_of(node), {}) for node, word in words if word.endswith(_SUMS)][:1]


class Argument(NamedTuple):
    """The value of an argument, and where it comes from."""

    value: object  # Of a flag its default.
    place: Place
    source: str = ''  # Of a flag, such as `', the default of FLAGS.use_tpu (train.py:7)'`.
    option: str = ''  # Of a flag, as the command line has it: `'--use_tpu'`.

    @property
    def origin(self) -> str:
        """The flag, or the place of a value that is written there, for messages."""
        return self.source or f' ({self.place.path}:{self.place.line})'

    @property
    def size(self) -> int:
        """The value if it is a positive number, 0 otherwise."""
        return self.value if type(self.value) is int and self.value > 0 else 0


class Program:
    """The files of one program, and the facts about them."""

    def __init__(self, files: Sequence[ScannedFile]):
        self.files = files
        self._facts: dict[str, list[Fact]] = {}
        for file in files:
            for fact in file.facts:
                self._facts.setdefault(fact.kind, []).append(fact)

    def facts(self, *kinds: str) -> list[Fact]:
        """Returns the facts of these kinds of all files, kind by kind."""
        return [fact for kind in kinds for fact in self._facts.get(kind, ())]

    def argument(self, call: Fact, name: str, default: object = UNREAD) -> Argument | None:
        """Returns the value of an argument of a call, or `None` if the source does not tell it.

        Where the call does not give the argument, the value is `default`.
        """
        if name not in call.values['arguments']:
            is_told = default is not UNREAD and not call.values['is_open']
            return Argument(default, call.place) if is_told else None
        value, place = call.values['arguments'][name], call.values['places'][name]
        if not isinstance(value, Flag):
            return None if value is UNREAD else Argument(value, place)
        found = [fact for fact in self.facts('flag') if fact.values['name'] == value.name]
        found = [fact for fact in found if fact.place.path == call.place.path] or found
        if len(found) != 1 or found[0].values['default'] is UNREAD:
            return None
        where = f'{found[0].place.path}:{found[0].place.line}'
        return Argument(found[0].values['default'], place,
                        f', the default of {value.written} ({where})', found[0].values['option'])
