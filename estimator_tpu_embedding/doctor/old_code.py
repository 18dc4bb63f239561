"""Finds what a file spells that fails today, or elsewhere: methods that dicts of Python 2 had,
arguments that functions of TensorFlow 1 had, paths on other machines, code of an old protoc.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
from collections.abc import Callable, Iterator

from ..compat import environment
from .facts import Fact, Finding, Place
from .nodes import Nodes, called_name, last_name
from .sources import Source
from .values import Values

PlaceOf = Callable[[ast.AST], Place]

_OF_DICTS = {  # the expression for today, of a dict `d`
    'has_key': 'key in {}', 'iteritems': '{}.items()', 'iterkeys': '{}.keys()',
    'itervalues': '{}.values()', 'viewitems': '{}.items()', 'viewkeys': '{}.keys()',
    'viewvalues': '{}.values()'}

_SUMS = frozenset({f'reduce_{name}' for name in 'all any max mean min prod sum'.split()})
ARGUMENTS = {
    'dim': frozenset({'expand_dims', 'nn.log_softmax', 'nn.softmax'}),
    'dimension': frozenset({'argmax', 'argmin'}),
    'filter': frozenset({'nn.conv2d', 'nn.conv2d_transpose', 'nn.conv3d'}),
    'fn1': frozenset({'cond'}), 'fn2': frozenset({'cond'}),
    'keep_dims': _SUMS | {'norm', 'nn.moments'},
    'keep_prob': frozenset({'nn.dropout'}),
    'partition_strategy': frozenset({'nn.embedding_lookup', 'nn.embedding_lookup_sparse',
                                     'nn.nce_loss', 'nn.sampled_softmax_loss'}),
    'reduction_indices': _SUMS, 'squeeze_dims': frozenset({'squeeze'})}
"""By an argument of TensorFlow 1 alone, the functions below `tf`, which are there in both."""

_PATH = re.compile(r'(gs|s3|s3a|hdfs|viewfs)://[\w{%$.-]|/(cns|bigstore|placer)/[\w{%-]')
_PREFIX = re.compile(r'(gs|s3|s3a|hdfs|viewfs)://$')
_OF_GOOGLE = 'a file system of Google; here it is a local path: copy the files to this machine'
_OF_GS = ("TensorFlow itself reads it, over the network and with your credentials; Python's open() "
          'does not, and a TPUEstimator refuses it as model_dir (E913): copy what you can to this '
          'machine, and give a local model_dir')
_NO_FILE_SYSTEM = ('TensorFlow has no file system for {}:// (UnimplementedError), unless a package '
                   'registers one: copy the files to this machine')

_OF_PROTOC = re.compile(r'^(?:\w+ = | +)?(?P<name>_descriptor\.(?:Enum|EnumValue|Field|Service)?'
                        r'Descriptor)\(', re.MULTILINE)
_REFUSES = 4
"""The first version of protobuf whose descriptors only its own code may make."""

_VERSION = re.compile(r'PY2|PY3|version|hasattr|getattr|signature', re.IGNORECASE)
_CAUGHT = re.compile(r'\b(AttributeError|TypeError|Exception|StandardError)\b')


def findings_of(source: Source, nodes: Nodes, place_of: PlaceOf) -> Iterator[Finding]:
    """Yields E104, E122 and W217 about one file."""
    yield from _old_methods(nodes, place_of)
    yield from _paths(nodes, place_of)
    yield from _of_old_protoc(source)


def old_arguments(nodes: Nodes, paths_of: Callable[[ast.expr], tuple[str, ...]],
                  place_of: PlaceOf) -> Iterator[Fact]:
    """Yields a fact `'old argument'` per such argument of a call that nothing guards."""
    for call in nodes.of(ast.Call):
        for each in call.keywords:
            functions = ARGUMENTS.get(each.arg or '')
            if functions is not None and (paths := paths_of(call.func)) and all(
                    path.removeprefix('tensorflow.') in functions for path in paths) and (
                    not _is_guarded(call, nodes)):
                yield Fact('old argument', place_of(each), {'name': each.arg, 'path': paths[0]})


def _old_methods(nodes: Nodes, place_of: PlaceOf) -> Iterator[Finding]:
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


def _paths(nodes: Nodes, place_of: PlaceOf) -> Iterator[Finding]:
    """Yields W217 per constant that begins as a path which is not on this machine.

    Docstrings and help texts are left out, and so are bare prefixes such as `'gs://'`, which
    programs compare with.
    """
    for node in nodes.of(ast.Constant):
        if not isinstance(node.value, str) or '/' not in node.value[:9]:
            continue
        match = _PATH.match(node.value) or _begins_more(node, nodes) and _PREFIX.match(node.value)
        if match and not _is_text(node, nodes):
            what = _OF_GOOGLE if not match[1] else _OF_GS if match[1] == 'gs' else (
                _NO_FILE_SYSTEM.format(match[1]))
            yield Finding('W217', place_of(node), node.value, node.value,
                          f'{node.value[:80]} is not on this machine: {what}')


def _begins_more(node: ast.Constant, nodes: Nodes) -> bool:
    """Whether a constant is the beginning of a text that is put together: f-string or sum."""
    above = nodes.parents.get(node)
    return (isinstance(above, ast.JoinedStr) and above.values[0] is node
            or isinstance(above, ast.BinOp) and above.left is node)


def _is_text(node: ast.Constant, nodes: Nodes) -> bool:
    """Whether a constant is a docstring, a help text, or what something is compared with."""
    above = nodes.parents.get(node)
    while isinstance(above, (ast.JoinedStr, ast.BinOp, ast.FormattedValue, ast.Tuple)):
        above = nodes.parents.get(above)
    if isinstance(above, ast.keyword):
        return above.arg in ('help', 'description', 'epilog')
    if isinstance(above, ast.Call):
        name = called_name(above)
        return node in above.args[2:] if name.startswith('DEFINE_') else name in (
            'startswith', 'endswith', 'replace', 'lstrip', 'print', 'split')
    return isinstance(above, (ast.Expr, ast.Compare))


def _of_old_protoc(source: Source) -> Iterator[Finding]:
    """Yields E104 at the first descriptor that a `*_pb2.py` makes, if protobuf refuses that."""
    if not source.path.endswith('_pb2.py') or not source.cells:
        return
    found = _OF_PROTOC.search(source.cells[0])
    try:
        version = importlib.metadata.version('protobuf')
    except importlib.metadata.PackageNotFoundError:
        return
    if found is None or int(version.partition('.')[0]) < _REFUSES or (
            environment.has_protobuf_in_python()):
        return
    before, column = source.cells[0][:found.start('name')], len(found['name'])
    line, start = before.count('\n') + 1, len(before) - before.rfind('\n')
    yield Finding(
        'E104', Place(source.path, line, start, line, start + column),
        f'google.protobuf.{found["name"].removeprefix("_")}', found['name'],
        f'protobuf {version} refuses code that a protoc before 3.19 made; make the file again '
        f'with a newer protoc, or set {environment.PROTOBUF}=python, which is slower', 'lost')
