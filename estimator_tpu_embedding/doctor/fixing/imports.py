"""Writes an import statement anew when some of its names have successors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import libcst

from .edits import Statement


class Changed(NamedTuple):
    """A new statement, and what comes after it.

    Attributes:
      statement: in the place of the old one.
      lines: other statements, each for a line of its own.
      bound: what each name stands for that it, or one of the lines, now imports from elsewhere.
    """

    statement: Statement
    lines: Sequence[str]
    bound: Mapping[str, str]


def changed(statement: Statement, successors: Mapping[libcst.ImportAlias, str]) -> Changed:
    """Returns a statement that binds the same names to their successors.

    Args:
      statement: the old one.
      successors: of some of its names, as whole paths.

    Raises:
      ValueError: says why that cannot be written.
    """
    if isinstance(statement, libcst.Import):
        return _changed_import(statement, successors)
    return _changed_from(statement, successors)


def _changed_import(statement: libcst.Import, successors: Mapping[libcst.ImportAlias, str]
                    ) -> Changed:
    """`import a as b, c` with other modules, under the same names."""
    bound = {}
    for alias, successor in successors.items():
        if alias.asname is None and isinstance(alias.name, libcst.Attribute):
            raise ValueError('the import binds the first part of a dotted name')
        bound[_bound(alias)] = successor
    names = [_renamed(alias, successors[alias], _bound(alias)) if alias in successors else alias
             for alias in statement.names]
    return Changed(statement.with_changes(names=names), (), bound)


def _changed_from(statement: libcst.ImportFrom, successors: Mapping[libcst.ImportAlias, str]
                  ) -> Changed:
    """`from a import b, c` with the names that stay, and a line for each other module."""
    names = statement.names
    assert isinstance(names, Sequence)  # And no star.
    by_module: dict[str, list[libcst.ImportAlias]] = {}
    for alias in names:
        if alias in successors:
            by_module.setdefault(successors[alias].rpartition('.')[0], []).append(alias)
    if '' in by_module:
        raise ValueError('the successor is a module, and no name of one')
    kept = [alias for alias in names if alias not in successors]
    first = statement.module
    if not kept:
        module, given = next(iter(by_module.items()))
        kept = [_renamed(alias, successors[alias].rpartition('.')[2], _bound(alias))
                for alias in given]
        first = _dotted(module)
        del by_module[module]
    if any(_has_comment(alias) for alias in names) and len(kept) < len(names):
        raise ValueError('comments stand between the names of the import')
    lines = [f'from {module} import ' + ', '.join(
        _written(successors[alias].rpartition('.')[2], _bound(alias)) for alias in given)
        for module, given in by_module.items()]
    end = kept[-1].with_changes(comma=names[-1].comma)
    return Changed(statement.with_changes(module=first, names=[*kept[:-1], end]), lines,
                   {_bound(alias): successor for alias, successor in successors.items()})


def _bound(alias: libcst.ImportAlias) -> str:
    return alias.evaluated_alias or alias.evaluated_name


def _renamed(alias: libcst.ImportAlias, name: str, bound: str) -> libcst.ImportAlias:
    """The same entry with another name, which binds what it bound."""
    if name == bound:
        return alias.with_changes(name=_dotted(name), asname=None)
    asname = alias.asname or libcst.AsName(name=libcst.Name(bound))
    return alias.with_changes(name=_dotted(name), asname=asname)


def _written(name: str, bound: str) -> str:
    return name if name == bound else f'{name} as {bound}'


def _dotted(path: str) -> libcst.Attribute | libcst.Name:
    node = libcst.parse_expression(path)
    assert isinstance(node, (libcst.Attribute, libcst.Name))  # For the type checker.
    return node


def _has_comment(alias: libcst.ImportAlias) -> bool:
    return '#' in libcst.Module([]).code_for_node(alias)
