"""Evaluates conditions on versions, such as `LooseVersion(tf.__version__) >= '1.14'`.

Only texts, numbers, lists and what a version is made of are computed; nothing is called. TensorFlow
has two versions: its own, and 1.15 with `--tf1`.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import operator
import re
import sys
from collections.abc import Callable

from ..compat.tf1 import VERSION as VERSION_1
from .meanings import Constant

_TENSORFLOW = ('tensorflow', 'tensorflow-cpu', 'tensorflow-intel', 'tf-nightly', 'tf-nightly-cpu')
_OF_TENSORFLOW = re.compile(
    r'tensorflow\.(__version__|VERSION|version\.VERSION)')
_OF_REAL_TENSORFLOW = re.compile(
    r'tensorflow\.compat\.v[12]\.(__version__|VERSION|version\.VERSION)')
_SIX = {'six.PY2': False, 'six.PY3': True, 'six.PY34': True}
_PARSERS = frozenset({
    'LooseVersion', 'StrictVersion', 'NormalizedVersion', 'Version', 'parse', 'parse_version'})
_COMPARED: dict[type, Callable] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b}
_METHODS = frozenset({'split', 'startswith', 'strip', 'replace', 'rsplit', 'partition'})
_NUMBER = re.compile(r'\d+|[a-z]+')


class _Unknown(Exception):
    """The expression is not made of versions and constants."""


@functools.cache
def installed() -> str:
    """Returns the version of TensorFlow that is installed, without an import, or `''`."""
    for name in _TENSORFLOW:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ''


def mentions_version(paths: list[str]) -> bool:
    """Whether one of the names in an expression is a version."""
    return any(path in _SIX or path.startswith(('sys.version', 'sys.hexversion'))
               or path.endswith(('__version__', '.VERSION', '.version.VERSION', 'GIT_VERSION'))
               for path in paths)


def evaluate(node: ast.expr, path_of: Callable[[ast.expr], str],
             constant_of: Callable[[ast.expr], Constant | None]) -> tuple[object, object] | None:
    """Returns the value of an expression without and with `--tf1`, or `None` if nobody can tell.

    Args:
      node: of constants, versions, and comparisons of them.
      path_of: returns the path of a name of a library, such as `'sys.version_info'`, or `''`.
      constant_of: returns what a name is that was computed from a version, or `None`.
    """
    def known(one: ast.expr, version: str) -> object:
        constant = constant_of(one)
        if constant is None:
            return _named(path_of(one), version)
        return constant.with_tf1 if version == VERSION_1 else constant.value

    try:
        return (_value(node, functools.partial(known, version=installed())),
                _value(node, functools.partial(known, version=VERSION_1)))
    except (_Unknown, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def _value(node: ast.expr, known: Callable[[ast.expr], object]) -> object:
    def value(one: ast.expr) -> object:
        return _value(one, known)

    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float)):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List)):
        items = [value(one) for one in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    if isinstance(node, ast.Attribute) and node.attr == 'version' and isinstance(
            node.value, ast.Call):
        return value(node.value)  # `LooseVersion(x).version` is a list.
    if isinstance(node, (ast.Name, ast.Attribute)):
        return known(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not value(node.operand)
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Slice):
            ends = (None if one is None else value(one)
                    for one in (node.slice.lower, node.slice.upper, node.slice.step))
            return value(node.value)[slice(*ends)]  # type: ignore[index]
        return value(node.value)[value(node.slice)]  # type: ignore[index]
    if isinstance(node, ast.Compare):
        return _comparison(node, value)
    if isinstance(node, ast.BoolOp):
        is_and = isinstance(node.op, ast.And)
        return (all if is_and else any)([value(one) for one in node.values])
    if isinstance(node, ast.Call) and not node.keywords:
        return _called(node, value)
    raise _Unknown


def _named(path: str, version: str) -> object:
    if _OF_TENSORFLOW.fullmatch(path) and version:
        return version
    if _OF_REAL_TENSORFLOW.fullmatch(path) and installed():
        return installed()
    if path in _SIX:
        return _SIX[path]
    if path == 'sys.version_info':
        return tuple(sys.version_info)
    if path in ('sys.version', 'sys.hexversion'):
        return getattr(sys, path.partition('.')[2])
    if path in ('sys.version_info.major', 'sys.version_info.minor'):
        return getattr(sys.version_info, path.rpartition('.')[2])
    raise _Unknown


def _comparison(node: ast.Compare, value: Callable[[ast.expr], object]) -> bool:
    left = value(node.left)
    for sign, other in zip(node.ops, node.comparators):
        right = value(other)
        if isinstance(left, _Version) or isinstance(right, _Version):
            left, right = _Version.of(left), _Version.of(right)
        if type(sign) not in _COMPARED:
            raise _Unknown
        if not _COMPARED[type(sign)](left, right):
            return False
        left = right
    return True


class _Version(list):
    """The parts of a version, numbers first; comparisons hold for it and for texts."""

    @classmethod
    def of(cls, given: object) -> _Version:
        if isinstance(given, _Version):
            return given
        if not isinstance(given, str):
            raise _Unknown
        parts = [int(part) if part.isdigit() else -1 for part in _NUMBER.findall(given.lower())]
        while parts and not parts[-1]:
            parts.pop()  # 2.0.0 is 2.
        return cls(parts)


def _called(node: ast.Call, value: Callable[[ast.expr], object]) -> object:
    function = node.func
    last = function.attr if isinstance(function, ast.Attribute) else (
        function.id if isinstance(function, ast.Name) else '')
    arguments = [value(one) for one in node.args if not isinstance(one, ast.Starred)]
    if len(arguments) != len(node.args) or any(
            isinstance(one, str) and len(one) > 100 for one in arguments):
        raise _Unknown
    if last in _PARSERS and len(arguments) == 1:
        return _Version.of(arguments[0])
    if isinstance(function, ast.Name) and last in ('int', 'float', 'str', 'tuple', 'list', 'len'):
        return {'int': int, 'float': float, 'str': str, 'tuple': tuple, 'list': list,
                'len': len}[last](*arguments)  # type: ignore[operator]
    if isinstance(function, ast.Attribute) and last in _METHODS:
        text = value(function.value)
        if isinstance(text, str):
            return getattr(text, last)(*arguments)
    raise _Unknown
