"""Collects the calls and constants of a file that `traps` judges.

Each name of a TPU construct gets one short form, by whatever road a script reaches it:
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
import enum
from collections.abc import Callable, Iterator
from typing import NamedTuple, Union

from ..compat.refused import FEED_OPERATIONS
from .findings import Fact, Place
from .syntax import Nodes, called_name, last_name, text_of, written

PlaceOf = Callable[[ast.AST], Place]
PathsOf = Callable[[ast.expr], tuple[str, ...]]


class Flag(NamedTuple):
    """The value of a command-line flag, such as `FLAGS.use_tpu`, as the source has it."""

    name: str
    written: str


class Unread(enum.Enum):
    """A value that the source does not show."""

    VALUE = 'unread'


UNREAD = Unread.VALUE
Value = Union[bool, int, float, str, None, Flag, Unread]

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
    'TPUEstimator': ('model_fn', 'model_dir', 'config', 'params', 'use_tpu', 'train_batch_size',
                     'eval_batch_size', 'predict_batch_size', 'batch_axis', 'eval_on_tpu'),
    'shard': ('computation', 'inputs', 'num_shards'),
    'Estimator': ('model_fn', 'model_dir'),
    **{name: ('checkpoint',) for name in READERS}}
_COLUMNS = frozenset({'embedding_column', 'shared_embedding_columns'})
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
    """Returns the facts of one file, in the order of the source.

    Args:
      nodes: of the file.
      paths_of: returns all paths that an expression may have.
      place_of: returns the place of a node.
    """
    found = [*_constructs(nodes, paths_of, place_of), *_calls(nodes, place_of),
             *_sums(nodes, place_of)]
    return sorted(found, key=lambda fact: (fact.place.cell, fact.place[1:3]))


def _constructs(nodes: Nodes, paths_of: PathsOf, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields a fact per call of a construct, and one per function of a rate that it is given."""
    for call in nodes.of(ast.Call):
        name = called_name(call)
        if not (isinstance(call.func, ast.Name) or name in _WORDS or _is_operation(name)):
            continue
        path, kind = next(((path, kind) for path in paths_of(call.func)
                           if (kind := construct_of(path))), ('', ''))
        if kind:
            arguments = _arguments(call, kind)
            yield Fact(kind, place_of(call.func), {
                'path': path, 'written': written(call.func),
                'arguments': {name: _value(each) for name, each in arguments.items()},
                'places': {name: place_of(each) for name, each in arguments.items()},
                'is_open': _is_open(call)})
            rate = arguments.get('learning_rate_fn')
            if kind in _COLUMNS and rate is not None:
                yield from _rates(rate, nodes, place_of)


def _is_operation(name: str) -> bool:
    return name.replace('_', '').lower() in _OPERATIONS


def _arguments(call: ast.Call, kind: str) -> dict[str, ast.expr]:
    """Returns the arguments of a call by name, as far as they can be told."""
    found: dict[str, ast.expr] = {}
    for name, node in zip(POSITIONS.get(kind, ()), call.args):
        if isinstance(node, ast.Starred):
            break
        found[name] = node
    found.update({each.arg: each.value for each in call.keywords if each.arg})
    return found


def _is_open(call: ast.Call) -> bool:
    """Whether a call has arguments that the source does not show: `*args`, `**kwargs`."""
    return (any(isinstance(each, ast.Starred) for each in call.args)
            or any(each.arg is None for each in call.keywords))


def _value(node: ast.expr | None) -> Value:
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


def _rates(rate: ast.expr, nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
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


def _calls(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields facts about calls by the name that is called alone."""
    for node in nodes.of(ast.Call):
        name = called_name(node)
        if name in ('minimize', 'apply_gradients') and isinstance(node.func, ast.Attribute):
            yield Fact('minimize', place_of(node.func), {'name': name})
        elif name.endswith('Optimizer') and name not in _SUMS:
            yield Fact('optimizer', place_of(node.func), {'name': name})
        elif name == 'batch' and node.args and _is_fixed(node, nodes):
            yield Fact('fixed batch', place_of(node), {
                'written': f'batch({written(node.args[0])})'})
        elif name.startswith('DEFINE_') or name == 'add_argument' and node.args:
            yield from _flag(node, place_of)


def _is_fixed(call: ast.Call, nodes: Nodes) -> bool:
    """Whether a function that gets `params` takes a number or a flag for the size of its batch."""
    value = _value(call.args[0])
    return (isinstance(value, Flag) or type(value) is int and value > 1) and any(
        each.arg == 'params' for above in nodes.above(call)
        if isinstance(above, ast.FunctionDef) for each in above.args.args)


def _flag(call: ast.Call, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields a fact about a flag: its name, the option of the command line, and its default."""
    by_name = {each.arg: each.value for each in call.keywords}
    texts = [text_of(each) or '' for each in call.args]
    default = by_name.get('default')
    if called_name(call) == 'add_argument':
        option = next((each for each in texts if each.startswith('--')), texts[0])
        name = text_of(by_name.get('dest')) or option.lstrip('-').replace('-', '_')
    else:
        name = texts[0] if texts else text_of(by_name.get('name')) or ''
        option, default = f'--{name}', call.args[1] if len(call.args) > 1 else default
    is_switch = text_of(by_name.get('action')) in ('store_true', 'store_false')
    yield Fact('flag', place_of(call), {
        'name': name, 'option': option,
        'default': False if is_switch and default is None else _value(default)})


def _sums(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields the first mention of a sum over cores, in whatever form."""
    words = ((node, str(getattr(node, name))) for kind, name in (
        (ast.Attribute, 'attr'), (ast.Name, 'id'), (ast.alias, 'name'), (ast.Constant, 'value'))
        for node in nodes.of(kind))
    yield from [Fact('sum', place_of(node), {}) for node, word in words if word.endswith(_SUMS)][:1]
