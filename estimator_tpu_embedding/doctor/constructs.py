"""Collects the calls and constants of a file that `traps` and `command` judge.

Kinds of facts, besides the constructs of `construct_names.construct_of`:

| kind | what it is |
|---|---|
| `'TPUConfig.num_shards'` and so on | an argument that `ARGUMENTS` names |
| `'flag'`, `'required'` | the definition of a command-line flag, and flags that must be given |
| `'path'` | a constant that is a path on remote storage |
| `'rate'` | functions of learning rates, of which each table gets one of its own |
| `'minimize'`, `'optimizer'` | a call that trains variables; one that makes an optimizer for them |
| `'sum'` | any mention of a sum over cores |
| `'method'` | a call of a method in `METHODS`, by its name |
| `'context'` | `params['context']` |
| `'old method'` | a method of a dict that Python 3 lacks |
| `'old argument'` | an argument that functions of TensorFlow 2 lack |
| `'import'` | an import statement, as it is written |
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from . import flag_definitions, old_arguments, old_methods, storage
from .construct_names import READERS, construct_of, may_be_construct
from .facts import Fact, Place
from .nodes import Nodes, called_name
from .rate_functions import ARGUMENTS as RATES
from .rate_functions import RateFunctions
from .values import UNREAD, Value, Values

PlaceOf = Callable[[ast.AST], Place]
PathsOf = Callable[[ast.expr], tuple[str, ...]]

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
ARGUMENTS = {  # arguments that are facts of their own
    'TPUConfig': ('iterations_per_loop', 'per_host_input_for_training', 'tpu_job_name',
                  'num_cores_per_replica', 'experimental_feed_hook', 'input_partition_dims'),
    'TPUEstimatorSpec': ('host_call', 'eval_metrics', 'scaffold_fn'),
    'TPUEstimator': ('batch_axis',),
    'EmbeddingConfigSpec': ('partition_strategy', 'pipeline_execution_with_tensor_core')}
METHODS = frozenset({
    'evaluate', 'predict', 'train_and_evaluate', 'export_saved_model', 'export_savedmodel',
    'experimental_export_all_saved_models'})
_CALLS_ONLY = frozenset({'InfeedQueue', 'Estimator', *READERS})
_TRAIN = frozenset({'minimize', 'apply_gradients'})
_SUMS = ('CrossShardOptimizer', 'cross_replica_sum')


def facts_of(nodes: Nodes, paths_of: PathsOf, place_of: PlaceOf) -> list[Fact]:
    """Returns the facts of one file, or of one cell of a notebook, in the order of the source.

    Args:
      nodes: of the file.
      paths_of: returns all paths that an expression may have.
      place_of: returns the place of a node.
    """
    values = Values(nodes)
    found = [*_Constructs(paths_of, place_of, nodes, values).facts(), *_calls(nodes, place_of),
             *_words(nodes, place_of), *_imports(nodes, place_of),
             *storage.facts_of(nodes, place_of), *flag_definitions.facts_of(nodes, place_of),
             *old_methods.facts_of(nodes, values, place_of),
             *old_arguments.facts_of(nodes, paths_of, place_of)]
    return sorted(found, key=lambda fact: (fact.place.cell, fact.place[1:3]))


class _Constructs:
    """Finds the TPU constructs of one file."""

    def __init__(self, paths_of: PathsOf, place_of: PlaceOf, nodes: Nodes, values: Values):
        self._paths_of, self._place_of = paths_of, place_of
        self._nodes, self._values = nodes, values

    def facts(self) -> Iterator[Fact]:
        """Yields a fact per use of a construct, and one per argument in `ARGUMENTS`."""
        if not any(may_be_construct(word) for word, _ in _words_of(self._nodes)):
            return
        self._rates = RateFunctions(self._nodes)
        renamed = self._values.renamed()
        nodes: list[ast.Name | ast.Attribute] = [
            *(each for each in self._nodes.of(ast.Name)
              if may_be_construct(each.id) or each.id in renamed),
            *(each for each in self._nodes.of(ast.Attribute) if may_be_construct(each.attr))]
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
        is_call = self._is_call(node)
        if kind == 'InputPipelineConfig' and isinstance(call, ast.Attribute):
            return
        arguments = self._arguments(call, kind) if isinstance(call, ast.Call) and is_call else {}
        yield Fact(kind, self._place_of(node), {
            'path': path, 'written': _written(node), 'is_call': is_call,
            'arguments': {name: self._value(each) for name, each in arguments.items()},
            'places': {name: self._place_of(each) for name, each in arguments.items()},
            'optimizer': self._called(arguments.get('optimization_parameters')),
            'is_open': isinstance(call, ast.Call) and _is_open(call),
            'scope': self._scope(node)})
        rate = arguments.get(RATES.get(kind, ''))
        made = rate and self._rates.made_by(rate)
        if rate is not None and made:
            yield Fact('rate', self._place_of(rate), {
                'path': path, 'key': made.key, 'is_repeated': made.is_repeated, 'how': made.how})
        for name in ARGUMENTS.get(kind, ()):
            value = arguments.get(name)
            if value is not None and self._value(value) is not None:
                yield Fact(f'{kind}.{name}', self._place_of(value), {
                    'path': f'{path}.{name}', 'written': name, 'value': self._value(value)})

    def _is_call(self, node: ast.expr) -> bool:
        above = self._nodes.parents.get(node)
        return isinstance(above, ast.Call) and above.func is node

    def _arguments(self, call: ast.Call, kind: str) -> dict[str, ast.expr]:
        """Returns the arguments of a call by name, as far as they can be told."""
        found: dict[str, ast.expr] = {}
        for name, node in zip(POSITIONS.get(kind, ()), call.args):
            if isinstance(node, ast.Starred):
                break
            found[name] = node
        found.update({each.arg: each.value for each in call.keywords if each.arg})
        return found

    def _called(self, node: ast.expr | None) -> str:
        """Returns the name of what an expression calls, such as `'AdagradParameters'`."""
        if isinstance(node, ast.Name):
            node = self._values.assigned(node.id)
        return _written(node.func).rpartition('.')[2] if isinstance(node, ast.Call) else ''

    def _value(self, node: ast.expr) -> Value:
        value = self._values.of(node)
        if isinstance(node, ast.Name):
            node = self._values.assigned(node.id) or node
        if value is UNREAD and isinstance(node, ast.Attribute):
            if self._construct(node.value)[1] == 'InputPipelineConfig':
                return node.attr
        return value

    def _scope(self, node: ast.AST) -> str:
        """Returns the function around a node by its line, and `'?'` under a condition."""
        for above in self._nodes.above(node):
            if isinstance(above, (ast.If, ast.IfExp, ast.Try, ast.Match, ast.For, ast.While)):
                return '?'
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return str(above.lineno)
        return ''


def _is_open(call: ast.Call) -> bool:
    """Whether a call has arguments that the source does not show: `*args`, `**kwargs`."""
    return (any(isinstance(each, ast.Starred) for each in call.args)
            or any(each.arg is None for each in call.keywords))


def _words_of(nodes: Nodes) -> Iterator[tuple[str, ast.AST]]:
    """Yields the identifiers and texts of a file, with their nodes."""
    for attribute in nodes.of(ast.Attribute):
        yield attribute.attr, attribute
    for name in nodes.of(ast.Name):
        yield name.id, name
    for alias in nodes.of(ast.alias):
        yield alias.name.rpartition('.')[2], alias
    for constant in nodes.of(ast.Constant):
        if isinstance(constant.value, str):
            yield constant.value, constant


def _written(node: ast.expr) -> str:
    """Returns a chain of names as the source has it."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else '...')
    return '.'.join(reversed(parts))


def _calls(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields facts about calls by the name that is called alone."""
    for node in nodes.of(ast.Call):
        name = called_name(node)
        if name in _TRAIN and isinstance(node.func, ast.Attribute):
            yield Fact('minimize', place_of(node.func), {'name': name})
        elif name.endswith('Optimizer') and name not in _SUMS:
            yield Fact('optimizer', place_of(node.func), {'name': name})
        elif name in METHODS:
            yield Fact('method', place_of(node.func), {'name': name})


def _words(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    """Yields facts about words that need no resolution."""
    for node in nodes.of(ast.Subscript):
        if (isinstance(node.value, ast.Name) and node.value.id == 'params'
                and isinstance(node.slice, ast.Constant) and node.slice.value == 'context'):
            yield Fact('context', place_of(node), {
                'path': "params['context']", 'written': "params['context']"})
    for word, where in _words_of(nodes):
        if word.endswith(_SUMS):
            yield Fact('sum', place_of(where), {'name': word})
            break  # One says it all.


def _imports(nodes: Nodes, place_of: PlaceOf) -> Iterator[Fact]:
    for node in nodes.of(ast.ImportFrom):
        yield Fact('import', place_of(node), {
            'module': node.module or '', 'level': node.level})
    for statement in nodes.of(ast.Import):
        for each in statement.names:
            yield Fact('import', place_of(statement), {'module': each.name, 'level': 0})
