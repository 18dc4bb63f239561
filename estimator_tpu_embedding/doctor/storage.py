"""Finds constants that are paths on storage which is not on this machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping

from .facts import Fact, Place
from .nodes import Nodes, called_name

_PATH = re.compile(r'(gs|s3|s3a|hdfs|viewfs)://[\w{%$.-]|/(cns|bigstore|placer)/[\w{%-]')
_FIRST = frozenset('gshv/')
_HELPS = 3  # Position of the help text of `DEFINE_string(name, default, help)`, from 1.


def facts_of(nodes: Nodes, place_of: Callable[[ast.AST], Place]) -> Iterator[Fact]:
    """Yields a fact `'path'` for each constant that begins as such a path does.

    Docstrings and help texts are left out, and so are bare prefixes such as `'gs://'`, which
    programs compare with.
    """
    parents = nodes.parents
    for node in nodes.of(ast.Constant):
        if not isinstance(node.value, str) or node.value[:1] not in _FIRST:
            continue
        match = _PATH.match(node.value)
        if match is None and node.value.endswith('://') and _begins_more(node, parents):
            match = re.match(r'(gs|s3|s3a|hdfs|viewfs)://', node.value)
        if match is None or _is_text(node, parents):
            continue
        yield Fact('path', place_of(node), {
            'path': node.value, 'scheme': match[1] or f'/{match[2]}/'})


def _begins_more(node: ast.Constant, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a constant is the beginning of a text that is put together: f-string or sum."""
    above = parents.get(node)
    return (isinstance(above, ast.JoinedStr) and above.values[0] is node
            or isinstance(above, ast.BinOp) and above.left is node)


def _is_text(node: ast.Constant, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a constant is a docstring, a help text, or what something is compared with."""
    above = parents.get(node)
    while isinstance(above, (ast.JoinedStr, ast.BinOp, ast.FormattedValue, ast.Tuple)):
        above = parents.get(above)
    if isinstance(above, (ast.Expr, ast.Compare)):
        return True
    if isinstance(above, ast.keyword):
        return above.arg in ('help', 'description', 'epilog')
    if isinstance(above, ast.Call):
        name = called_name(above)
        if name.startswith('DEFINE_'):
            return node in above.args[_HELPS - 1:]
        return name in ('startswith', 'endswith', 'replace', 'lstrip', 'print', 'split')
    return False
