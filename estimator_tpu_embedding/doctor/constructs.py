"""Collects the calls and constants of a file that `traps` judges, and what fails today by its form.

Each name of a TPU construct gets one short form, by whatever road a script reaches it:
`tf.contrib.tpu.TPUConfig`, `tf.estimator.tpu.TPUConfig` and
`tensorflow.python.tpu.tpu_config.TPUConfig` are all facts of the kind `'TPUConfig'`. Other kinds:

| kind | what it is |
|---|---|
| `'flag'` | see `values.flags_of` |
| `'rate'` | functions of learning rates, of which each table gets one of its own |
| `'minimize'`, `'optimizer'` | a call that trains variables; one that makes an optimizer for them |
| `'sum'` | any mention of a sum over cores |
| `'method'` | a call of a method in `METHODS`, by its name |
| `'context'` | `params['context']` |
| `'old argument'` | an argument that functions of TensorFlow 2 lack |
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..compat.refused import FEED_OPERATIONS
from .facts import Fact, Finding, Place
from .syntax import Nodes, called_name, last_name, written
from .values import UNREAD, Value, Values, flags_of

PlaceOf = Callable[[ast.AST], Place]
PathsOf = Callable[[ast.expr], tuple[str, ...]]

_ROOTS = frozenset({
    'tensorflow', 'tensorflow_core', 'tensorflow_estimator', 'estimator_tpu_embedding'})
_UNIQUE = frozenset(
    'AsyncCheckpointSaverHook CrossShardOptimizer EmbeddingConfigSpec InfeedQueue '
    'InputPipelineConfig TPUClusterResolver TPUConfig TPUContext TPUEstimator TPUEstimatorSpec '
    'TPUInfeedOutfeedSessionHook TPUStrategy batch_parallel '
    'bfloat16_scope cross_replica_sum initialize_system initialize_tpu_system '
    'outside_compilation shutdown_system shutdown_tpu_system collective_permute'.split())
"""Names that nothing else in TensorFlow has."""
_OF_TPU = frozenset(
    'RunConfig TPUEmbedding all_to_all core embedding_column repeat replicate rewrite shard '
    'shared_embedding_columns TableConfig while_loop'.split())
"""Names that mean a TPU below a module for TPUs only."""
_OLDER = {
    'TPUStrategyV2': 'TPUStrategy', 'embedding_column_v2': 'embedding_column',
    'shared_embedding_columns_v2': 'shared_embedding_columns',
    'split_compile_and_replicate': 'replicate', 'TPUEmbeddingV2': 'TPUEmbedding'}
EMULATED = (_UNIQUE | _OF_TPU | {'context', 'embedding.TPUEmbedding'}) - {
    'InputPipelineConfig', 'TableConfig'}
"""Kinds of calls for TPUs; some of them are refused."""
_MODULES_OF_TF2 = frozenset({
    'embedding', 'tpu_embedding_v2', 'tpu_embedding_v1', 'tpu_embedding_for_serving',
    'tpu_embedding_v2_utils'})
_OF_TF2 = frozenset({
    'Adagrad', 'AdagradMomentum', 'Adam', 'FTRL', 'SGD', 'TPUEmbedding', 'TableConfig'})
READERS = frozenset({'NewCheckpointReader', 'load_checkpoint', 'load_variable'})
"""They read the tensors of a checkpoint as they are stored."""
_OPERATIONS = {name.lower() for name in FEED_OPERATIONS}
_WORDS = frozenset({*_UNIQUE, *_OF_TPU, *_OLDER, *_OF_TF2, *READERS, 'Estimator'})

POSITIONS = {  # parameters that may be given by position, in order
    'TPUConfig': ('iterations_per_loop', 'num_shards', 'num_cores_per_replica',
                  'per_host_input_for_training', 'tpu_job_name'),
    'RunConfig': ('tpu_config', 'evaluation_master', 'master', 'cluster'),
    'TPUEstimator': ('model_fn', 'model_dir', 'config', 'params', 'use_tpu', 'train_batch_size',
                     'eval_batch_size', 'predict_batch_size', 'batch_axis', 'eval_on_tpu'),
    'TPUEstimatorSpec': ('mode', 'predictions', 'loss', 'train_op', 'eval_metrics'),
    'shard': ('computation', 'inputs', 'num_shards'),
    'Estimator': ('model_fn', 'model_dir'),
    **{name: ('checkpoint',) for name in READERS}}
METHODS = frozenset({'evaluate', 'predict', 'train_and_evaluate'})
_RATES = {
    'embedding_column': 'learning_rate_fn', 'shared_embedding_columns': 'learning_rate_fn',
    'TableConfig': 'learning_rate_fn',
    **{f'embedding.{name}': 'learning_rate' for name in (
        'Adagrad', 'AdagradMomentum', 'Adam', 'FTRL', 'SGD')}}
"""The argument of each construct that may be a function of the step."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp,
          ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_CALLS_ONLY = frozenset({'InfeedQueue', 'Estimator', *READERS})
_SUMS = ('CrossShardOptimizer', 'cross_replica_sum')
_OF_DICTS = {  # the expression for today, of a dict `d`
    'has_key': 'key in {}', 'iteritems': '{}.items()', 'iterkeys': '{}.keys()',
    'itervalues': '{}.values()', 'viewitems': '{}.items()', 'viewkeys': '{}.keys()',
    'viewvalues': '{}.values()'}
_REDUCTIONS = frozenset({f'reduce_{name}' for name in 'all any max mean min prod sum'.split()})
OLD_ARGUMENTS = {
    'dim': frozenset({'expand_dims', 'nn.log_softmax', 'nn.softmax'}),
    'dimension': frozenset({'argmax', 'argmin'}),
    'filter': frozenset({'nn.conv2d', 'nn.conv2d_transpose', 'nn.conv3d'}),
    'fn1': frozenset({'cond'}), 'fn2': frozenset({'cond'}),
    'keep_dims': _REDUCTIONS | {'norm', 'nn.moments'},
    'keep_prob': frozenset({'nn.dropout'}),
    'partition_strategy': frozenset({'nn.embedding_lookup', 'nn.embedding_lookup_sparse',
                                     'nn.nce_loss', 'nn.sampled_softmax_loss'}),
    'reduction_indices': _REDUCTIONS, 'squeeze_dims': frozenset({'squeeze'})}
"""By an argument of TensorFlow 1 alone, the functions below `tf`, which are there in both."""
_VERSION = re.compile(r'PY2|PY3|version|hasattr|getattr|signature', re.IGNORECASE)
_CAUGHT = re.compile(r'\b(AttributeError|TypeError|Exception|StandardError)\b')


def construct_of(path: str) -> str | None:
    """Returns the short form of the path of a name; `None` for all other names.

    >>> construct_of('tensorflow.python.tpu.tpu_config.TPUConfig')
    'TPUConfig'
    >>> construct_of('tensorflow.compat.v1.estimator.tpu.RunConfig')
    'RunConfig'
    >>> construct_of('tensorflow.estimator.RunConfig') is None
    True
    >>> construct_of('tensorflow.tpu.experimental.embedding.TPUEmbedding')
    'embedding.TPUEmbedding'
    """
    root, *modules = path.split('.')
    if root not in _ROOTS or not modules:
        return None
    name = modules.pop()
    if name.replace('_', '').lower() in _OPERATIONS:
        return 'feed operation'
    name = _OLDER.get(name, name)
    if name in _UNIQUE or name in READERS or name == 'Estimator' and 'estimator' in modules:
        return name
    if not (any(part.startswith('tpu') for part in modules)
            or root == 'estimator_tpu_embedding' and not modules):
        return None
    if _MODULES_OF_TF2.intersection(modules):
        return f'embedding.{name}' if name in _OF_TF2 else None
    return name if name in _OF_TPU else None


def facts_of(nodes: Nodes, paths_of: PathsOf, place_of: PlaceOf) -> list[Fact]:
    """Returns the facts of one file, in the order of the source.

    Args:
      nodes: of the file.
      paths_of: returns all paths that an expression may have.
      place_of: returns the place of a node.
    """
    found = [*_Constructs(nodes, paths_of, place_of).facts(), *_calls(nodes, place_of),
             *_words(nodes, place_of), *flags_of(nodes, place_of),
             *_old_arguments(nodes, paths_of, place_of)]
    return sorted(found, key=lambda fact: (fact.place.cell, fact.place[1:3]))


class _Constructs:
    """Finds the TPU constructs of one file."""

    def __init__(self, nodes: Nodes, paths_of: PathsOf, place_of: PlaceOf):
        self._nodes, self._paths_of, self._place_of = nodes, paths_of, place_of
        self._values = Values(nodes)

    def facts(self) -> Iterator[Fact]:
        """Yields a fact per use of a construct."""
        nodes: list[ast.Name | ast.Attribute] = [*self._nodes.of(ast.Name), *(
            each for each in self._nodes.of(ast.Attribute)
            if each.attr in _WORDS or each.attr.replace('_', '').lower() in _OPERATIONS)]
        for node in nodes:
            if isinstance(node.ctx, ast.Load):
                path, kind = self._construct(node)
                if kind and not (kind in _CALLS_ONLY and not self._is_call(node)):
                    yield from self._facts(node, path, kind)

    def _construct(self, node: ast.expr) -> tuple[str, str]:
        """Returns the path and the kind of the first construct that an expression may mean."""
        return next(((path, kind) for path in self._paths_of(node)
                     if (kind := construct_of(path))), ('', ''))

    def _facts(self, node: ast.Name | ast.Attribute, path: str, kind: str) -> Iterator[Fact]:
        call = self._nodes.parents.get(node)
        if kind == 'InputPipelineConfig' and isinstance(call, ast.Attribute):
            return
        arguments = {}
        if isinstance(call, ast.Call) and call.func is node:
            arguments = _arguments(call, kind)
        yield Fact(kind, self._place_of(node), {
            'path': path, 'written': written(node), 'is_call': self._is_call(node),
            'arguments': {name: self._value(each) for name, each in arguments.items()},
            'places': {name: self._place_of(each) for name, each in arguments.items()},
            'is_open': isinstance(call, ast.Call) and _is_open(call)})
        rate = arguments.get(_RATES.get(kind, ''))
        made = rate and _made_by(rate, self._nodes)
        if rate is not None and made:
            yield Fact('rate', self._place_of(rate), made._asdict())

    def _is_call(self, node: ast.expr) -> bool:
        above = self._nodes.parents.get(node)
        return isinstance(above, ast.Call) and above.func is node

    def _value(self, node: ast.expr) -> Value:
        value = self._values.of(node)
        if isinstance(node, ast.Name):
            node = self._values.assigned(node.id) or node
        if value is UNREAD and isinstance(node, ast.Attribute):
            if self._construct(node.value)[1] == 'InputPipelineConfig':
                return node.attr
        return value


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


def _calls(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields facts about calls by the name that is called alone."""
    for node in nodes.of(ast.Call):
        name = called_name(node)
        if name in ('minimize', 'apply_gradients') and isinstance(node.func, ast.Attribute):
            yield Fact('minimize', place_of(node.func), {'name': name})
        elif name.endswith('Optimizer') and name not in _SUMS:
            yield Fact('optimizer', place_of(node.func), {'name': name})
        elif name in METHODS:
            yield Fact('method', place_of(node.func), {'name': name})


def _words(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields facts about what needs no resolution."""
    for node in nodes.of(ast.Subscript):
        if last_name(node.value) == 'params' and isinstance(node.slice, ast.Constant) and (
                node.slice.value == 'context'):
            yield Fact('context', place_of(node), {
                'path': "params['context']", 'written': "params['context']"})
    words = ((node, str(getattr(node, name))) for kind, name in (
        (ast.Attribute, 'attr'), (ast.Name, 'id'), (ast.alias, 'name'), (ast.Constant, 'value'))
        for node in nodes.of(kind))
    yield from [Fact('sum', place_of(node), {}) for node, word in words if word.endswith(_SUMS)][:1]


class _Made(NamedTuple):
    """A function of a learning rate that is made where it is given to a table.

    Two tables share the tag of a rate only if they have the same function object.

    Attributes:
      key: equal for functions that compute the same.
      is_repeated: whether this place makes several of them.
      how: how it is made: `'a lambda'` or `'a functools.partial'`.
    """

    key: str
    is_repeated: bool
    how: str


def _made_by(node: ast.expr, nodes: Nodes) -> _Made | None:
    """Returns what an argument makes; `None` if it makes nothing or nobody can tell."""
    is_partial = isinstance(node, ast.Call) and called_name(node) == 'partial'
    if not is_partial and not isinstance(node, ast.Lambda):
        return None
    loop, function = _around(node, nodes)
    free = _names_in(node)
    if loop is None and isinstance(function, ast.FunctionDef):
        calls = [call for call in nodes.of(ast.Call)
                 if isinstance(call.func, ast.Name) and call.func.id == function.name]
        if len(calls) > 1 or any(_around(call, nodes)[0] is not None for call in calls):
            loop = function
    scope = function.lineno if isinstance(function, _FUNCTIONS) and free else 0
    return _Made(f'{scope} {ast.dump(node)}', loop is not None and not free & _bound_in(loop),
                 'a functools.partial' if is_partial else 'a lambda')


def _around(node: ast.AST, nodes: Nodes) -> tuple[ast.AST | None, ast.AST | None]:
    """Returns the loop around a node within its function, if any, and that function."""
    loop: ast.AST | None = None
    below = node
    for above in nodes.above(node):
        if isinstance(above, _FUNCTIONS):
            return loop, above
        if loop is None and isinstance(above, _LOOPS) and below is not getattr(
                above, 'iter', None) and below not in getattr(above, 'orelse', ()):
            loop = above  # These parts are computed once.
        below = above
    return loop, None


def _bound_in(node: ast.AST) -> set[str]:
    """Returns the names that a loop or function binds, and that may differ each time."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, ast.arg):
            found.add(each.arg)
        elif isinstance(each, ast.FunctionDef) and each is not node:
            found.add(each.name)
    return found


def _names_in(node: ast.expr) -> set[str]:
    """Returns the names whose values decide what an expression makes."""
    if not isinstance(node, ast.Lambda):
        return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    return (_names_in(node.body) - own).union(*map(_names_in, defaults))


def _old_arguments(nodes: Nodes, paths_of: PathsOf, place_of: PlaceOf
                   ) -> Iterator[Fact]:
    """Yields a fact `'old argument'` per such argument of a call that nothing guards."""
    for call in nodes.of(ast.Call):
        for each in call.keywords:
            functions = OLD_ARGUMENTS.get(each.arg or '')
            if functions is not None and (paths := paths_of(call.func)) and all(
                    path.removeprefix('tensorflow.') in functions for path in paths) and (
                    not _is_guarded(call, nodes)):
                yield Fact('old argument', place_of(each), {'name': each.arg, 'path': paths[0]})


def old_methods(nodes: Nodes, place_of: PlaceOf) -> Iterator[Finding]:
    """Yields E122 per method that Python 3 lacks, where the object is a dict without doubt."""
    values = Values(nodes)
    for node in nodes.of(ast.Attribute):
        if node.attr in _OF_DICTS and isinstance(node.ctx, ast.Load):
            held, name = node.value, last_name(node.value) or 'd'
            if isinstance(held, ast.Name):
                held = values.assigned(name) or held
            is_dict = isinstance(held, (ast.Dict, ast.DictComp)) or isinstance(
                held, ast.Call) and called_name(held) in ('dict', 'OrderedDict', 'defaultdict')
            if is_dict and not _is_guarded(node, nodes):
                yield Finding('E122', place_of(node), f'dict.{node.attr}', f'{name}.{node.attr}',
                              f'a dict of Python 3 has no {node.attr}(): write '
                              + _OF_DICTS[node.attr].format(name))


def _is_guarded(node: ast.AST, nodes: Nodes) -> bool:
    """Whether a test of the version, or a `try`, may keep Python from a node."""
    return any(
        _VERSION.search(ast.unparse(above.test)) if isinstance(above, (ast.If, ast.IfExp))
        else isinstance(above, ast.Try) and any(
            each.type is None or _CAUGHT.search(ast.unparse(each.type)) for each in above.handlers)
        for above in nodes.above(node))
